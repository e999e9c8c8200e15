#include "ops/fp8/quantize.h"

namespace bloomery {

void check_quantize(const Quantize& k) {
  const std::int64_t rows = k.x.rows(), columns = k.x.columns();
  check(rows % kFp8Multiple == 0 && columns % kFp8Multiple == 0, "fp8: a matrix ", k.x.shape,
        " needs extents that are multiples of ", kFp8Multiple);
  for (const View& copy : {k.rows, k.transposed}) {
    check(!copy || (copy.dtype == DType::uint8 && copy.numel() == rows * columns),
          "fp8: a copy of ", k.x.shape, " cannot be ", copy.dtype, copy.shape);
  }
  check(
      !k.derivative_at || (k.activation != Activation::none && k.derivative_at.dtype == k.x.dtype &&
                           k.derivative_at.numel() == k.x.numel()),
      "fp8: a derivative is that of an activation, at a matrix like x");
  check(!k.column_sums || (k.column_sums.dtype == DType::fp32 &&
                           k.column_sums.numel() == num_fp8_sum_parts(rows) * columns),
        "fp8: column sums of ", k.x.shape, " are fp32 [", num_fp8_sum_parts(rows), ", ", columns,
        "]");
  check(k.scale && k.scale.dtype == DType::fp32, "fp8: a scale is one fp32 number on the device");
}

}  // namespace bloomery
