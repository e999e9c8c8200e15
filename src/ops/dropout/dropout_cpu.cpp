#include <algorithm>
#include <vector>

#include "ops/common/convert.h"
#include "ops/common/row_lanes.h"
#include "ops/dropout/dropout.h"
#include "ops/dropout/mask_cpu.h"

namespace bloomery {
namespace {

constexpr std::int64_t kGrain = 16384;  // elements per item of work

template <class From, class To>
void apply_row(const From* x, const float* factors, To* y, std::int64_t columns, bool add) {
  if constexpr (std::is_same_v<Accumulator<From>, float> &&
                std::is_same_v<Accumulator<To>, float>) {
    for_lanes<float>(columns, [=](std::int64_t c, auto part) {
      Lanes<float> value = load_lanes(factors + c) * load_lanes(x + c, part);
      if (add) {
        value += load_lanes(y + c, part);
      }
      store_lanes(y + c, value, part);
    });
  } else {
    for (std::int64_t c = 0; c < columns; ++c) {
      const double earlier = add ? static_cast<double>(load(y + c)) : 0.0;
      const double value = earlier + double{factors[c]} * static_cast<double>(load(x + c));
      store(y + c, static_cast<Accumulator<To>>(value));
    }
  }
}

}  // namespace

template <>
void run(ThisCpu, Stream& stream, const ApplyDropout& k) {
  const std::int64_t columns = k.x.columns();
  const std::int64_t grain = std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, columns));
  dispatch_floating(k.x.dtype, [&](auto from) {
    dispatch_floating(k.y.dtype, [&](auto to) {
      using From = typename decltype(from)::type;
      using To = typename decltype(to)::type;
      stream.device().pool().for_ranges(
          k.x.rows(), grain, [&](std::int64_t begin, std::int64_t end) {
            std::vector<float> factors(mask_size(columns));
            for (std::int64_t row = begin; row < end; ++row) {
              fill_mask(k.mask, row, columns, factors.data());
              apply_row(k.x.as<From>() + row * columns, factors.data(),
                        k.y.as<To>() + row * columns, columns, k.add);
            }
          });
    });
  });
}

}  // namespace bloomery
