// The one matrix product: row-major, no copies, fp32 accumulation (fp64 for fp64), with fused
// epilogues. On the CPU kernels of our own or oneDNN, on CUDA cuBLASLt. Which of them, which
// algorithm and blocks serve a shape is decided once and kept in MatmulChoices.
#pragma once

#include "device/launch.h"
#include "ops/activation/activation_kind.h"
#include "ops/fp8/fp8_format.h"
#include "tensor/tensor.h"

namespace bloomery {

// How the bytes of an operand are numbers: of that format, times *inverse_scale (fp32 [1]).
struct Fp8Code {
  Fp8Format format = Fp8Format::none;
  ConstView inverse_scale;
  explicit operator bool() const { return format != Fp8Format::none; }
};

// d [m, n] = epilogue(op(a) op(b)), or d += when `add`. op transposes when asked: a is [m, k] or,
// transposed, [k, m]; b is [k, n] or, transposed, [n, k]. Views count as matrices of
// shape.rows() x shape.back() unless m, n, k say otherwise, so weights may have more dimensions.
// a, b and bias have one dtype; d has that dtype or the accumulation dtype. Operands of 8 bits are
// uint8 with their codes: then both lie with k contiguous (b is transposed, a is not), and d has
// any dtype, the bias that of d.
struct Matmul {
  ConstView a, b;
  View d;
  std::int64_t m = 0, n = 0, k = 0;
  bool transpose_a = false, transpose_b = false;
  bool add = false;
  // An extent comes from the data and will be another next time: on the CPU the fixed rule plans
  // this product, and nothing is kept of it.
  bool ragged = false;
  // b is a weight, which no kernel of this stream writes: it may be read before the kernels before
  // this one have ended (overlap.h).
  bool b_lasts = false;
  Fp8Code a_code, b_code;
  bool fast_sums = false;  // of 8 bits: sums may be less exact than fp32 where that is faster

  // Forward epilogue: d = activation(op(a) op(b) + bias); `before` receives the value before the
  // activation, in the dtype of d. Not together with `add`.
  ConstView bias;  // [n], or null
  Activation activation = Activation::none;
  View before;  // [m, n], or null when no backward pass will need it or nothing is activated

  // Backward epilogue: d = (op(a) op(b)) * derivative(`derivative_at`). Not together with `add`.
  Activation derivative = Activation::none;
  ConstView derivative_at;  // [m, n], what `before` held, in the dtype of d
  View activated;           // receives the activation at `derivative_at`, like it; or null
  // Receives rows whose column sums are those of d as stored, in the accumulation dtype: what is
  // left of a bias gradient is their sum. Only beside a derivative.
  View column_sums;  // [num_column_sum_parts(stream, m, n), n], or null
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const Matmul&);
void run(OnCuda, Stream&, const Matmul&);

// sums[n] (+)= column sums of x [m, n], in the accumulation dtype; deterministic.
struct ColumnSum {
  ConstView x;
  View sums;
  bool add = false;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const ColumnSum&);
void run(OnCuda, Stream&, const ColumnSum&);

// Into how many parts column sums of m rows are divided where a kernel computes them in passing.
std::int64_t num_column_sum_parts(const Stream& stream, std::int64_t m, std::int64_t n);

struct MatmulSizes {
  std::int64_t m, n, k;
};
// The sizes of a product. Throws Error when its operands do not fit together.
MatmulSizes checked_sizes(const Matmul& matmul);

double flops(const Matmul& matmul);

inline bool has_epilogue(const Matmul& matmul) {
  return static_cast<bool>(matmul.bias) || matmul.activation != Activation::none ||
         matmul.derivative != Activation::none;
}

}  // namespace bloomery
