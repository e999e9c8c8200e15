#include "ops/arithmetic/arithmetic.h"
#include "ops/common/convert.h"

namespace bloomery {
namespace {

constexpr std::int64_t kGrain = 16384;

template <class From, class To>
void scale_add(ThreadPool& pool, const From* x, To* y, std::int64_t count, float factor, bool add) {
  using Sum =
      std::conditional_t<std::is_same_v<From, double> || std::is_same_v<To, double>, double, float>;
  pool.for_ranges(count, kGrain, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      Sum value = static_cast<Sum>(factor) * static_cast<Sum>(load(x + i));
      if (add) {
        value += static_cast<Sum>(load(y + i));
      }
      store(y + i, static_cast<Accumulator<To>>(value));
    }
  });
}

}  // namespace

template <>
void run(ThisCpu, Stream& stream, const ScaleAdd& k) {
  const float factor = k.factor * (k.scale ? *k.scale.as<float>() : 1.0f);
  dispatch_floating(k.x.dtype, [&](auto from) {
    dispatch_floating(k.y.dtype, [&](auto to) {
      using From = typename decltype(from)::type;
      using To = typename decltype(to)::type;
      scale_add(stream.device().pool(), k.x.as<From>(), k.y.as<To>(), k.y.numel(), factor, k.add);
    });
  });
}

}  // namespace bloomery
