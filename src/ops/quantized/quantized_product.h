// Products of few rows with weights in fewer bits, as generation has them: bound by reading the
// weights, which are read as they are.
#pragma once

#include "device/launch.h"
#include "ops/activation/activation_kind.h"
#include "tensor/quantized.h"

namespace bloomery {

// With more rows it is faster to make the numbers first.
inline constexpr std::int64_t kFewQuantizedRows = 16;

// d [m, n] = activation(a [m, k] w^T + bias), w [n, k] as its codes and scales. Sums in fp32; what
// codes stand for is not rounded. a, scales, bias and d have one dtype.
struct QuantizedProduct {
  ConstView a, codes, scales;
  QuantizedFormat format = QuantizedFormat::none;
  ConstView bias;  // [n], or null
  Activation activation = Activation::none;
  View d;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const QuantizedProduct&);
void run(OnCuda, Stream&, const QuantizedProduct&);

double flops(const QuantizedProduct& product);

// Whether the product is one of these: few rows, and extents that its kernels have.
bool is_quantized_product(const QuantizedTensor& weight, std::int64_t rows, std::int64_t k);

}  // namespace bloomery
