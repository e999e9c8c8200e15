// What can be wrong with the arguments of one rank's call of a communicator; empty if nothing.
#pragma once

#include <string>

#include "comm/communicator.h"

namespace bloomery {

std::string all_gather_problem(ConstView part, ConstView whole, int rank, int size);
std::string reduce_scatter_problem(ConstView whole, ConstView part, int rank, int size);
std::string reduce_problem(DType dtype);
std::string root_problem(int root, int size);
std::string all_to_all_problem(ConstView out, ConstView in, const Counts& counts, int size);

std::int64_t row_elements(const Shape& shape);
// Of the first `end` counts.
std::int64_t sum_of(const std::vector<std::int64_t>& counts, int end);

// `elements` behind `start`.
inline void* offset(void* start, std::int64_t elements, DType dtype) {
  return static_cast<char*>(start) + elements * static_cast<std::int64_t>(size_of(dtype));
}
inline const void* offset(const void* start, std::int64_t elements, DType dtype) {
  return static_cast<const char*>(start) + elements * static_cast<std::int64_t>(size_of(dtype));
}

}  // namespace bloomery
