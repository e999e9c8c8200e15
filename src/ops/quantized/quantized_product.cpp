#include "ops/quantized/quantized_product.h"

namespace bloomery {

double flops(const QuantizedProduct& p) {
  return 2.0 * static_cast<double>(p.a.numel()) * static_cast<double>(p.codes.rows());
}

bool is_quantized_product(const QuantizedTensor& weight, std::int64_t rows, std::int64_t k) {
  const std::int64_t multiple = weight.format == QuantizedFormat::nf4 ? kNf4Block : 16;
  return weight && weight.scales.dtype() != DType::fp64 && rows > 0 && rows <= kFewQuantizedRows &&
         k > 0 && k % multiple == 0;
}

}  // namespace bloomery
