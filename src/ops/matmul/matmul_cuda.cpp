#include "ops/activation/activation.h"
#include "ops/matmul/cublaslt.h"
#include "ops/matmul/epilogue_cuda.h"
#include "ops/matmul/few_rows.h"
#include "ops/matmul/matmul.h"
#include "ops/matmul/some_rows.h"

namespace bloomery {
namespace {

// The library has one GELU, by tanh, in the precision of 16-bit outputs; its matrix of values
// before the activation has rows of whole 16 bytes. Its products with GELU's derivative, and those
// that sum columns of an operand, take longer than the bare product and a pass over its result.
bool fuses(const Matmul& k, const MatmulSizes& sizes) {
  return k.derivative == Activation::none &&
         (k.activation == Activation::none ||
          (k.activation == Activation::gelu_tanh && k.d.dtype != DType::fp32 && sizes.n % 8 == 0));
}

cublasLtEpilogue_t epilogue(const Matmul& k) {
  if (k.activation != Activation::none) {
    if (k.before) {
      return k.bias ? CUBLASLT_EPILOGUE_GELU_AUX_BIAS : CUBLASLT_EPILOGUE_GELU_AUX;
    }
    return k.bias ? CUBLASLT_EPILOGUE_GELU_BIAS : CUBLASLT_EPILOGUE_GELU;
  }
  return k.bias ? CUBLASLT_EPILOGUE_BIAS : CUBLASLT_EPILOGUE_DEFAULT;
}

// The same product without the outermost part of its epilogue, then that part by itself.
void multiply_in_steps(Stream& stream, const Matmul& k, const MatmulSizes& sizes) {
  Matmul rest = k;
  if (k.activation != Activation::none) {
    rest.activation = Activation::none;
    rest.before = {};
    rest.d = k.before ? k.before : k.d;
    run(OnCuda{}, stream, rest);
    run(OnCuda{}, stream, ActivationForward{.x = rest.d, .y = k.d, .activation = k.activation});
  } else if (k.derivative != Activation::none) {
    rest.derivative = Activation::none;
    rest.derivative_at = {};
    rest.column_sums = rest.activated = {};
    run(OnCuda{}, stream, rest);
    multiply_by_derivative_cuda(stream, k, sizes);
  } else if (k.bias) {
    rest.bias = {};
    run(OnCuda{}, stream, rest);
    add_bias_cuda(stream, k.d, k.bias);
  } else {
    check(sizes.m * sizes.n * sizes.k == 0, "matmul: cuBLASLt has no deterministic kernel for a ",
          sizes.m, "x", sizes.n, "x", sizes.k, " product of ",
          k.a_code ? concat(k.a_code.format, " by ", k.b_code.format) : name(k.a.dtype), " into ",
          k.d.dtype, k.a_code ? "; fp8 needs a GPU of compute capability 8.9 or above" : "");
    if (!k.add) {
      stream.fill(k.d.data, 0, k.d.bytes());
    }
  }
}

}  // namespace

void run(OnCuda, Stream& stream, const Matmul& k) {
  const MatmulSizes sizes = checked_sizes(k);
  if (!k.a_code && (multiply_few_rows(stream, k, sizes) || multiply_some_rows(stream, k, sizes))) {
    return;
  }
  const bool fused = sizes.m * sizes.n * sizes.k > 0 && fuses(k, sizes) &&
                     stream.device().service<CublasLt>().multiply(stream, k, sizes, epilogue(k));
  if (!fused) {
    multiply_in_steps(stream, k, sizes);
  }
}

}  // namespace bloomery
