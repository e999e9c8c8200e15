#include "checkpoint/pickle/strided_copy.h"

#include <cstdint>
#include <cstring>

#include "base/error.h"

namespace bloomery {
namespace {

template <class Word>
void copy(const std::byte* from, const Shape& shape, const Shape& strides, std::byte* to) {
  const int last = shape.rank() - 1;
  const std::int64_t columns = shape[last], stride = strides[last];
  const std::int64_t rows = shape.rows();
  Shape index = shape;
  for (int d = 0; d < last; ++d) {
    index[d] = 0;
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    std::int64_t start = 0;
    for (int d = 0; d < last; ++d) {
      start += index[d] * strides[d];
    }
    const std::byte* source = from + start * static_cast<std::int64_t>(sizeof(Word));
    if (stride == 1) {
      std::memcpy(to, source, static_cast<std::size_t>(columns) * sizeof(Word));
    } else {
      for (std::int64_t i = 0; i < columns; ++i) {
        std::memcpy(to + i * static_cast<std::int64_t>(sizeof(Word)),
                    source + i * stride * static_cast<std::int64_t>(sizeof(Word)), sizeof(Word));
      }
    }
    to += columns * static_cast<std::int64_t>(sizeof(Word));
    for (int d = last - 1; d >= 0 && ++index[d] == shape[d]; --d) {
      index[d] = 0;
    }
  }
}

}  // namespace

void copy_strided(const std::byte* from, std::size_t element_bytes, const Shape& shape,
                  const Shape& strides, std::byte* to) {
  if (shape.numel() == 0) {
    return;
  }
  if (shape.rank() == 0) {
    std::memcpy(to, from, element_bytes);
    return;
  }
  switch (element_bytes) {
    case 1:
      return copy<std::uint8_t>(from, shape, strides, to);
    case 2:
      return copy<std::uint16_t>(from, shape, strides, to);
    case 4:
      return copy<std::uint32_t>(from, shape, strides, to);
    case 8:
      return copy<std::uint64_t>(from, shape, strides, to);
    default:
      throw Error(concat("copy_strided: elements of ", element_bytes, " bytes"));
  }
}

Shape contiguous_strides(const Shape& shape) {
  Shape strides = shape;
  std::int64_t stride = 1;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    strides[d] = stride;
    stride *= shape[d];
  }
  return strides;
}

}  // namespace bloomery
