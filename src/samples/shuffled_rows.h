// The order of the rows of a mapping, drawn as Megatron-DeepSpeed's helper draws it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

namespace bloomery {

// Partners are drawn some way ahead of their use, so that their memory is there in time.
template <class Row>
void shuffle_rows(std::vector<Row>& rows, std::int64_t seed) {
  constexpr std::int64_t kAhead = 512;
  std::mt19937_64 words(static_cast<std::uint64_t>(seed + 1));
  std::array<std::int64_t, kAhead> partners;
  for (auto last = static_cast<std::int64_t>(rows.size()) - 1; last > 0;) {
    const std::int64_t count = std::min(kAhead, last);
    for (std::int64_t k = 0; k < count; ++k) {
      partners[k] = static_cast<std::int64_t>(words() % static_cast<std::uint64_t>(last - k + 1));
      __builtin_prefetch(&rows[partners[k]], 1);
    }
    for (std::int64_t k = 0; k < count; ++k) {
      std::swap(rows[last - k], rows[partners[k]]);
    }
    last -= count;
  }
}

}  // namespace bloomery
