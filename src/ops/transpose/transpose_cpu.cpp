#include <algorithm>
#include <cstring>

#include "ops/transpose/transpose.h"

namespace bloomery {

template <>
void run(ThisCpu, Stream& stream, const Transpose& k) {
  constexpr std::int64_t kGrainBytes = 1 << 16;
  const std::int64_t bytes = k.row_bytes();
  if (bytes == 0) {
    return;
  }
  const auto* const from = k.x.as<char>();
  auto* const to = k.y.as<char>();
  const std::int64_t grain = std::max<std::int64_t>(1, kGrainBytes / bytes);
  stream.device().pool().for_ranges(
      k.first * k.second, grain,
      [=, first = k.first, second = k.second](std::int64_t begin, std::int64_t end) {
        for (std::int64_t row = begin; row < end; ++row) {  // of y
          const std::int64_t b = row / first, a = row % first;
          std::memcpy(to + row * bytes, from + (a * second + b) * bytes,
                      static_cast<std::size_t>(bytes));
        }
      });
}

}  // namespace bloomery
