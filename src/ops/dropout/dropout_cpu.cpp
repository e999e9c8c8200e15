#include <algorithm>
#include <vector>

#include "ops/common/convert.h"
#include "ops/dropout/dropout.h"
#include "ops/dropout/mask_cpu.h"

namespace bloomery {
namespace {

constexpr std::int64_t kGrain = 16384;  // elements per item of work

template <class From, class To>
void apply_row(const From* x, const float* factors, To* y, std::int64_t columns, bool add) {
  using Sum =
      std::conditional_t<std::is_same_v<From, double> || std::is_same_v<To, double>, double, float>;
  for (std::int64_t c = 0; c < columns; ++c) {
    const Sum earlier = add ? static_cast<Sum>(load(y + c)) : Sum{0};
    const Sum value = earlier + static_cast<Sum>(factors[c]) * static_cast<Sum>(load(x + c));
    store(y + c, static_cast<Accumulator<To>>(value));
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
