#include "ops/activation/activation.h"
#include "ops/matmul/add_bias.h"
#include "ops/matmul/cublaslt.h"
#include "ops/matmul/few_rows.h"
#include "ops/matmul/matmul.h"

namespace bloomery {
namespace {

// The library has one GELU, by tanh, in the precision of 16-bit outputs; its matrix of values
// before the activation has rows of whole 16 bytes.
bool fuses(Activation activation, const Matmul& k, const MatmulSizes& sizes) {
  return activation == Activation::none ||
         (activation == Activation::gelu_tanh && k.d.dtype != DType::fp32 && sizes.n % 8 == 0);
}

cublasLtEpilogue_t epilogue(const Matmul& k) {
  if (k.derivative != Activation::none) {
    return CUBLASLT_EPILOGUE_DGELU;
  }
  if (k.column_sums_of_a) {
    return CUBLASLT_EPILOGUE_BGRADB;
  }
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
    run(OnCuda{}, stream, rest);
    run(OnCuda{}, stream,
        ActivationBackward{
            .grad_y = k.d, .x = k.derivative_at, .grad_x = k.d, .activation = k.derivative});
  } else if (k.bias) {
    rest.bias = {};
    run(OnCuda{}, stream, rest);
    add_bias_cuda(stream, k.d, k.bias);
  } else if (k.column_sums_of_a) {
    rest.column_sums_of_a = {};
    ConstView a = k.a;
    a.shape = {sizes.k, sizes.m};
    run(OnCuda{}, stream, ColumnSum{.x = a, .sums = k.column_sums_of_a});
    run(OnCuda{}, stream, rest);
  } else {
    check(sizes.m * sizes.n * sizes.k == 0, "matmul: cuBLASLt has no deterministic kernel for a ",
          sizes.m, "x", sizes.n, "x", sizes.k, " product of ", k.a.dtype, " into ", k.d.dtype);
    if (!k.add) {
      stream.fill(k.d.data, 0, k.d.bytes());
    }
  }
}

}  // namespace

void run(OnCuda, Stream& stream, const Matmul& k) {
  const MatmulSizes sizes = checked_sizes(k);
  if (multiply_few_rows(stream, k, sizes)) {
    return;
  }
  const bool fused = sizes.m * sizes.n * sizes.k > 0 && fuses(k.activation, k, sizes) &&
                     fuses(k.derivative, k, sizes) &&
                     stream.device().service<CublasLt>().multiply(stream, k, sizes, epilogue(k));
  if (!fused) {
    multiply_in_steps(stream, k, sizes);
  }
}

}  // namespace bloomery
