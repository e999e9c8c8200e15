// A strided view made contiguous, for elements of any size.
#pragma once

#include <cstddef>

#include "tensor/shape.h"

namespace bloomery {

// Writes the elements of `shape` in row-major order; the element at index i of the view starts at
// from + element_bytes * sum(i[d] * strides[d]). element_bytes is 1, 2, 4 or 8.
void copy_strided(const std::byte* from, std::size_t element_bytes, const Shape& shape,
                  const Shape& strides, std::byte* to);

// Of a row-major tensor.
Shape contiguous_strides(const Shape& shape);

}  // namespace bloomery
