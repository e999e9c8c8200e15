// Between numbers and their copies in 8 bits.
#pragma once

#include "device/launch.h"
#include "ops/activation/activation_kind.h"
#include "ops/fp8/fp8_format.h"
#include "tensor/tensor.h"

namespace bloomery {

// A matrix in 8 bits, by rows and transposed, as products want it; either may be missing.
struct Fp8Tensor {
  Fp8Format format = Fp8Format::none;
  Tensor rows, transposed;  // uint8
  Tensor inverse_scale;     // fp32 [1], on the device
};

// Extents of matrices in 8 bits are multiples of this, as the products of GPUs want them.
inline constexpr std::int64_t kFp8Multiple = 16;

// How many rows are added up in one part of column sums.
inline constexpr std::int64_t kColumnSumRows = 128;
inline std::int64_t num_fp8_sum_parts(std::int64_t rows) {
  return (rows + kColumnSumRows - 1) / kColumnSumRows;
}

// The bytes of numbers * scale, by rows and transposed: of an infinity NaN, which the check for
// finite gradients sees, of what else is too large the largest number. The numbers are x; with an
// activation activation(x) or, where `derivative_at` is given, x times the derivative at that.
struct Quantize {
  ConstView x;  // [rows, columns] of fp32, bf16 or fp16, multiples of kFp8Multiple
  Fp8Format format = Fp8Format::e4m3;
  ConstView scale;        // fp32 [1]
  View rows, transposed;  // uint8 [rows, columns] and [columns, rows], or null
  View amax;  // fp32 [1], or null: raised to the largest size of a number; NaN counts as that
  Activation activation = Activation::none;
  ConstView derivative_at;  // like x, or null
  View column_sums;         // fp32 [num_fp8_sum_parts(rows), columns] of the numbers, or null
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const Quantize&);
void run(OnCuda, Stream&, const Quantize&);
void check_quantize(const Quantize& quantize);

// Raises amax, fp32 [1], to the largest |x|.
struct RaiseAmax {
  ConstView x;
  View amax;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const RaiseAmax&);
void run(OnCuda, Stream&, const RaiseAmax&);

// y = the number of each byte, divided by the scale. On the CPU alone.
struct Dequantize {
  ConstView x;  // uint8
  Fp8Format format = Fp8Format::e4m3;
  ConstView inverse_scale;  // fp32 [1]
  View y;                   // fp32
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const Dequantize&);

}  // namespace bloomery
