// Several samples in a sequence.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace bloomery {

// Best fit, the longest first: which samples share a sequence of `capacity` tokens. No length may
// be over it. Of equal lengths the earlier sample comes first.
std::vector<std::vector<std::int64_t>> pack(std::span<const std::int64_t> lengths,
                                            std::int64_t capacity);

}  // namespace bloomery
