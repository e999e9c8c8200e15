#include <algorithm>

#include "ops/common/convert.h"
#include "ops/low_rank/low_rank.h"

namespace bloomery {
namespace {

constexpr std::int64_t kRowsAtOnce = 64;

}  // namespace

template <>
void run(ThisCpu, Stream& stream, const SpreadRows& k) {
  dispatch_floating(k.b.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using Sum = Accumulator<T>;
    const std::int64_t rank = k.b.shape.back(), width = rank * k.parts.num_places;
    const T* const b = k.b.as<T>();
    T* const wide = k.wide.as<T>();
    stream.device().pool().for_ranges(
        k.b.shape.rows(), kRowsAtOnce, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t row = begin; row < end; ++row) {
            T* const target = wide + row * width;
            std::fill_n(target, width, T{});
            const int place = k.parts.place(row);
            for (std::int64_t j = 0; place >= 0 && j < rank; ++j) {
              store(target + place * rank + j,
                    static_cast<Sum>(k.scale) * load(b + row * rank + j));
            }
          }
        });
  });
}

template <>
void run(ThisCpu, Stream& stream, const CollectRows& k) {
  dispatch_floating(k.wide.dtype, [&](auto from) {
    dispatch_floating(k.b.dtype, [&](auto to) {
      using From = typename decltype(from)::type;
      using To = typename decltype(to)::type;
      using Sum = Accumulator<To>;
      const std::int64_t rank = k.b.shape.back(), width = rank * k.parts.num_places;
      const From* const wide = k.wide.as<From>();
      To* const b = k.b.as<To>();
      stream.device().pool().for_ranges(
          k.b.shape.rows(), kRowsAtOnce, [&](std::int64_t begin, std::int64_t end) {
            for (std::int64_t row = begin; row < end; ++row) {
              const int place = k.parts.place(row);
              for (std::int64_t j = 0; j < rank; ++j) {
                To* const target = b + row * rank + j;
                const Sum own =
                    place < 0 ? Sum{0}
                              : static_cast<Sum>(k.scale) *
                                    static_cast<Sum>(load(wide + row * width + place * rank + j));
                store(target, k.add ? own + static_cast<Sum>(load(target)) : own);
              }
            }
          });
    });
  });
}

}  // namespace bloomery
