#include "checkpoint/boxes.h"

#include <algorithm>
#include <set>

namespace bloomery {
namespace {

// Index in the row-major buffer of `box` of the element at global position `at`.
std::int64_t buffer_index(const Box& box, const Shape& at) {
  std::int64_t index = 0;
  for (int dim = 0; dim < at.rank(); ++dim) {
    index = index * box.extent[dim] + at[dim] - box.offset[dim];
  }
  return index;
}

// Appends the boxes of a flat range of `box` cut along `dim`, whose outer dimensions have extent 1.
void append_range(const Box& box, int dim, std::int64_t first, std::int64_t count,
                  std::vector<Box>& boxes) {
  if (count == 0) {
    return;
  }
  if (count == box.extent.numel()) {
    boxes.push_back(box);
    return;
  }
  const std::int64_t row = box.extent.numel() / box.extent[dim];
  const auto cut = [&](std::int64_t begin, std::int64_t end) {
    Box part = box;
    part.offset[dim] += begin;
    part.extent[dim] = end - begin;
    return part;
  };
  const std::int64_t begin = first / row, end = (first + count) / row;
  if (begin == end) {  // inside one row
    append_range(cut(begin, begin + 1), dim + 1, first % row, count, boxes);
    return;
  }
  const std::int64_t head = first % row == 0 ? 0 : row - first % row;
  if (head > 0) {
    append_range(cut(begin, begin + 1), dim + 1, first % row, head, boxes);
  }
  const std::int64_t whole = begin + (head > 0 ? 1 : 0);
  if (whole < end) {
    boxes.push_back(cut(whole, end));
  }
  append_range(cut(end, end + 1), dim + 1, 0, (first + count) % row, boxes);
}

// The dimension along which the boxes start at the most places: a sweep along it compares least.
int best_sweep(const Shape& global, const std::vector<Box>& boxes) {
  int best = 0;
  std::size_t most = 0;
  for (int dim = 0; dim < global.rank(); ++dim) {
    std::set<std::int64_t> starts;
    for (const Box& box : boxes) {
      starts.insert(box.offset[dim]);
    }
    if (starts.size() > most) {
      most = starts.size();
      best = dim;
    }
  }
  return best;
}

bool any_overlap(const Shape& global, std::vector<Box> boxes) {
  const int dim = best_sweep(global, boxes);
  std::ranges::sort(boxes, {}, [dim](const Box& box) { return box.offset[dim]; });
  std::vector<const Box*> active;
  for (const Box& box : boxes) {
    std::erase_if(active, [&](const Box* other) {
      return other->offset[dim] + other->extent[dim] <= box.offset[dim];
    });
    for (const Box* other : active) {
      if (intersect(*other, box)) {
        return true;
      }
    }
    active.push_back(&box);
  }
  return false;
}

}  // namespace

std::optional<Box> intersect(const Box& a, const Box& b) {
  Box part = a;
  for (int dim = 0; dim < a.extent.rank(); ++dim) {
    const std::int64_t begin = std::max(a.offset[dim], b.offset[dim]);
    const std::int64_t end = std::min(a.offset[dim] + a.extent[dim], b.offset[dim] + b.extent[dim]);
    if (begin >= end) {
      return std::nullopt;
    }
    part.offset[dim] = begin;
    part.extent[dim] = end - begin;
  }
  return part;
}

std::vector<Box> boxes_of_range(const Box& box, std::int64_t first, std::int64_t count) {
  check(first >= 0 && count >= 0 && first + count <= box.extent.numel(), "elements ", first, " to ",
        first + count, " are not all in a box of ", box.extent);
  std::vector<Box> boxes;
  append_range(box, 0, first, count, boxes);
  return boxes;
}

void for_each_run(const Box& part, const Box& a, const Box& b, const RunBody& body) {
  // Inner dimensions that `part` fills in both buffers belong to one run, and one more.
  int inner = part.extent.rank();
  std::int64_t length = 1;
  while (inner > 0) {
    --inner;
    length *= part.extent[inner];
    if (part.extent[inner] != a.extent[inner] || part.extent[inner] != b.extent[inner]) {
      break;
    }
  }
  std::int64_t runs = 1;
  for (int dim = 0; dim < inner; ++dim) {
    runs *= part.extent[dim];
  }
  Shape at = part.offset;
  for (std::int64_t run = 0; run < runs; ++run) {
    body(buffer_index(a, at), buffer_index(b, at), length);
    for (int dim = inner - 1; dim >= 0; --dim) {
      if (++at[dim] < part.offset[dim] + part.extent[dim]) {
        break;
      }
      at[dim] = part.offset[dim];
    }
  }
}

bool exactly_cover(const Shape& global, const std::vector<Box>& boxes) {
  std::int64_t covered = 0;
  for (const Box& box : boxes) {
    if (__builtin_add_overflow(covered, box.extent.numel(), &covered)) {
      return false;
    }
  }
  return covered == global.numel() && !any_overlap(global, boxes);
}

}  // namespace bloomery
