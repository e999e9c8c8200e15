// Matrices in fewer bits: a code for each number, and what the codes of a row, or of a part of one,
// are multiplied by. The formats are those of bitsandbytes (LLM.int8 by rows, NF4 by blocks of 64)
// and, by rows, E4M3.
#pragma once

#include <cstdint>
#include <ostream>

#include "tensor/tensor.h"

namespace bloomery {

enum class QuantizedFormat : std::uint8_t { none, int8, fp8, nf4 };

constexpr const char* name(QuantizedFormat format) {
  constexpr const char* kNames[] = {"none", "int8", "fp8", "nf4"};
  return kNames[static_cast<int>(format)];
}
inline std::ostream& operator<<(std::ostream& out, QuantizedFormat format) {
  return out << name(format);
}

inline constexpr std::int64_t kNf4Block = 64;  // numbers of a row with one scale

// Bytes that hold the codes of a row. Of NF4 two in each, the first in the upper half.
constexpr std::int64_t code_bytes(QuantizedFormat format, std::int64_t columns) {
  return format == QuantizedFormat::nf4 ? (columns + 1) / 2 : columns;
}
constexpr std::int64_t scales_per_row(QuantizedFormat format, std::int64_t columns) {
  return format == QuantizedFormat::nf4 ? (columns + kNf4Block - 1) / kNf4Block : 1;
}

// A scale is the largest size among its numbers, in their dtype, and so exact. The largest code is
// 1: quantizing what a tensor stands for gives the tensor again.
struct QuantizedTensor {
  QuantizedFormat format = QuantizedFormat::none;
  Tensor codes;   // uint8 [rows, code_bytes]
  Tensor scales;  // [rows, scales_per_row], of the dtype of the numbers

  explicit operator bool() const { return format != QuantizedFormat::none; }
  std::size_t bytes() const { return codes ? codes.bytes() + scales.bytes() : 0; }

  // Without numbers yet; of a shape whose last extent is the columns.
  static QuantizedTensor empty(Stream& stream, QuantizedFormat format, DType dtype,
                               const Shape& shape) {
    return {format,
            Tensor::empty(stream, DType::uint8, {shape.rows(), code_bytes(format, shape.back())}),
            Tensor::empty(stream, dtype, {shape.rows(), scales_per_row(format, shape.back())})};
  }
};

}  // namespace bloomery
