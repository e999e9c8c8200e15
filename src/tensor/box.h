// The part of a named global tensor that one rank holds: an offset and an extent per dimension.
#pragma once

#include "tensor/shape.h"

namespace bloomery {

struct Box {
  Shape global;  // of the whole tensor
  Shape offset;  // where this part starts
  Shape extent;  // how large it is

  static Box whole(const Shape& shape) {
    Box box{shape, shape, shape};
    for (int i = 0; i < shape.rank(); ++i) {
      box.offset[i] = 0;
    }
    return box;
  }

  // The part of rank `index` when dimension `dim` is cut into `count` equal pieces.
  Box split(int dim, int index, int count) const {
    check(extent[dim] % count == 0, "dimension ", dim, " of ", extent, " cannot be cut into ",
          count, " equal parts");
    Box part = *this;
    part.extent[dim] = extent[dim] / count;
    part.offset[dim] = offset[dim] + part.extent[dim] * index;
    return part;
  }

  // Index in the global row-major tensor of element `local` of this part.
  std::int64_t global_index(std::int64_t local) const {
    std::int64_t index = 0, stride = 1;
    for (int dim = extent.rank() - 1; dim >= 0; --dim) {
      index += (local % extent[dim] + offset[dim]) * stride;
      local /= extent[dim];
      stride *= global[dim];
    }
    return index;
  }

  bool operator==(const Box&) const = default;
};

}  // namespace bloomery
