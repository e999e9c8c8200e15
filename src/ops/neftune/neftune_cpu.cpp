#include "ops/common/convert.h"
#include "ops/neftune/neftune.h"

namespace bloomery {

template <>
void run(ThisCpu, Stream& stream, const AddNoise& k) {
  constexpr std::int64_t kLanes = 8, kRowsAtOnce = 4;
  const std::int64_t columns = k.x.shape.back();
  dispatch_floating(k.x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T* const x = k.x.as<T>();
    stream.device().pool().for_ranges(
        k.x.shape.rows(), kRowsAtOnce, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t row = begin; row < end; ++row) {
            const std::int64_t sample = k.places.sample(k.first_token + row);
            const std::int32_t place = k.places.place(k.first_token + row);
            RandomBlock block{};
            for (std::int64_t c = 0; c < columns; ++c) {
              if (c % kLanes == 0) {
                block =
                    dropout_block(k.key, sample, place, 0, static_cast<std::uint32_t>(c / kLanes));
              }
              const auto lane = static_cast<int>(c % kLanes);
              const float noise = k.size * centred(block[lane / 2] >> (16 * (lane % 2)));
              T* const at = x + row * columns + c;
              store(at, load(at) + static_cast<Accumulator<T>>(noise));
            }
          }
        });
  });
}

}  // namespace bloomery
