#include <algorithm>

#include "ops/arithmetic/copy_columns.h"
#include "ops/common/convert.h"

namespace bloomery {
namespace {

template <class From, class To>
void copy_row(const From* x, To* y, std::int64_t count, bool add) {
  using Sum =
      std::conditional_t<std::is_same_v<From, double> || std::is_same_v<To, double>, double, float>;
  for (std::int64_t i = 0; i < count; ++i) {
    const Sum value = static_cast<Sum>(load(x + i));
    store(y + i, static_cast<Accumulator<To>>(add ? value + static_cast<Sum>(load(y + i)) : value));
  }
}

}  // namespace

template <>
void run(ThisCpu, Stream& stream, const CopyColumns& k) {
  constexpr std::int64_t kGrain = 16384;
  const std::int64_t grain =
      std::max<std::int64_t>(1, kGrain / std::max<std::int64_t>(1, k.columns));
  dispatch_floating(k.x.dtype, [&](auto from) {
    dispatch_floating(k.y.dtype, [&](auto to) {
      const auto* const x = k.x.as<typename decltype(from)::type>() + k.x_first;
      auto* const y = k.y.as<typename decltype(to)::type>() + k.y_first;
      stream.device().pool().for_ranges(k.rows, grain, [=](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {
          copy_row(x + row * k.x_width, y + row * k.y_width, k.columns, k.add);
        }
      });
    });
  });
}

}  // namespace bloomery
