#include "comm/call_checks.h"

#include <algorithm>
#include <numeric>

namespace bloomery {
namespace {

std::string overlap_problem(ConstView part, ConstView whole, int rank) {
  const auto* const first = static_cast<const char*>(whole.data);
  const auto* const begin = static_cast<const char*>(part.data);
  const bool apart = begin + part.bytes() <= first || begin >= first + whole.bytes();
  const bool in_place = begin == first + static_cast<std::size_t>(rank) * part.bytes();
  return apart || in_place ? "" : "the part overlaps the whole outside this rank's place";
}

// Of the counts of one direction of an all_to_all.
std::string counts_problem(const char* direction, const std::vector<std::int64_t>& counts,
                           const Shape& shape, int size) {
  if (static_cast<int>(counts.size()) != size ||
      std::any_of(counts.begin(), counts.end(), [](std::int64_t c) { return c < 0; })) {
    return concat("needs ", size, " counts, none negative, of rows that go ", direction);
  }
  if (shape.rank() == 0 || sum_of(counts, size) != shape[0]) {
    return concat("the counts of rows that go ", direction, " add up to ", sum_of(counts, size),
                  ", but the tensor is ", shape);
  }
  return {};
}

}  // namespace

std::string all_gather_problem(ConstView part, ConstView whole, int rank, int size) {
  return whole.numel() != part.numel() * size || whole.dtype != part.dtype
             ? concat(size, " parts ", part.dtype, part.shape, " do not make a whole ", whole.dtype,
                      whole.shape)
             : overlap_problem(part, whole, rank);
}

std::string reduce_scatter_problem(ConstView whole, ConstView part, int rank, int size) {
  if (whole.numel() != part.numel() * size || whole.dtype != part.dtype) {
    return concat("a whole ", whole.dtype, whole.shape, " is not ", size, " parts ", part.dtype,
                  part.shape);
  }
  const std::string dtype = reduce_problem(part.dtype);
  return dtype.empty() ? overlap_problem(part, whole, rank) : dtype;
}

std::string reduce_problem(DType dtype) {
  return dtype == DType::uint8 ? "uint8 cannot be reduced" : "";
}

std::string root_problem(int root, int size) {
  return root < 0 || root >= size ? concat("there is no rank ", root, " among ", size) : "";
}

std::string all_to_all_problem(ConstView out, ConstView in, const Counts& counts, int size) {
  std::string problem = counts_problem("out", counts.out, out.shape, size);
  if (problem.empty()) {
    problem = counts_problem("in", counts.in, in.shape, size);
  }
  if (problem.empty() &&
      (out.dtype != in.dtype || row_elements(out.shape) != row_elements(in.shape))) {
    problem = concat("rows of ", out.dtype, out.shape, " and ", in.dtype, in.shape, " differ");
  }
  return problem;
}

std::int64_t row_elements(const Shape& shape) {
  std::int64_t count = 1;
  for (int i = 1; i < shape.rank(); ++i) {
    count *= shape[i];
  }
  return count;
}

std::int64_t sum_of(const std::vector<std::int64_t>& counts, int end) {
  return std::accumulate(counts.begin(), counts.begin() + end, std::int64_t{0});
}

}  // namespace bloomery
