// Arithmetic on boxes: what layouts of one tensor have in common, and the boxes of a flat range.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "tensor/box.h"

namespace bloomery {

// The part that two boxes of one tensor share; none when they are apart or empty.
std::optional<Box> intersect(const Box& a, const Box& b);

// Elements [first, first + count) of the row-major buffer of `box`, as boxes whose elements follow
// each other in that order: at most 2r - 1 for r dimensions. What a ZeRO shard holds of a tensor.
std::vector<Box> boxes_of_range(const Box& box, std::int64_t first, std::int64_t count);

// Calls body(element of a's buffer, element of b's buffer, length) for the longest runs of `part`
// that are contiguous in both row-major buffers, in rising order of both. `part` lies in both.
using RunBody = std::function<void(std::int64_t in_a, std::int64_t in_b, std::int64_t length)>;
void for_each_run(const Box& part, const Box& a, const Box& b, const RunBody& body);

// Whether the boxes, all of one tensor and inside it, cover each of its elements exactly once.
bool exactly_cover(const Shape& global, const std::vector<Box>& boxes);

}  // namespace bloomery
