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
  check(k.scale && k.scale.dtype == DType::fp32, "fp8: a scale is one fp32 number on the device");
}

}  // namespace bloomery
