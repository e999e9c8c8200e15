// Which rows of a fused weight belong together: queries, keys and values, or gate and up.
#pragma once

#include <cstdint>

namespace bloomery {

// Rows are [.., slots, inner]; parts are runs of slots. `places` says which of the low-rank
// products a part has, -1: none. Usable in device code.
struct RowParts {
  static constexpr int kMost = 3;
  std::int64_t slots = 1, inner = 1;
  int count = 1;
  std::int64_t ends[kMost] = {1, 0, 0};  // slots, counted from the first
  int places[kMost] = {0, 0, 0};
  int num_places = 1;

  constexpr int place(std::int64_t row) const {
    const std::int64_t slot = row / inner % slots;
    int part = 0;
    while (part + 1 < count && slot >= ends[part]) {
      ++part;
    }
    return places[part];
  }
};

}  // namespace bloomery
