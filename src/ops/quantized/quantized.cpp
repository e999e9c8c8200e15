#include "ops/quantized/quantized.h"

#include "device/op_clock.h"

namespace bloomery {

void quantize_rows(Stream& stream, const Tensor& x, std::int64_t first_column, std::int64_t columns,
                   const QuantizedTensor& to, std::int64_t first_row) {
  const OpScope scope(stream, "quantize");
  const std::int64_t rows = x.shape().rows();
  check(x.dtype() == to.scales.dtype() && first_column >= 0 &&
            first_column + columns <= x.shape().back() && first_row + rows <= to.codes.shape()[0] &&
            to.codes.shape()[1] == code_bytes(to.format, columns),
        "quantize: columns ", first_column, " to ", first_column + columns, " of ", x.shape(),
        " do not fit codes ", to.codes.shape(), " from row ", first_row, " on");
  launch(stream, QuantizeRows{.x = x,
                              .first_column = first_column,
                              .columns = columns,
                              .format = to.format,
                              .codes = to.codes.slice(first_row, first_row + rows),
                              .scales = to.scales.slice(first_row, first_row + rows)});
}

Tensor dequantized(Stream& stream, const QuantizedTensor& from, const Shape& shape) {
  const OpScope scope(stream, "dequantize");
  check(shape.rows() == from.codes.shape()[0] &&
            from.codes.shape()[1] == code_bytes(from.format, shape.back()),
        "dequantize: codes ", from.codes.shape(), " are not those of a matrix ", shape);
  Tensor y = Tensor::empty(stream, from.scales.dtype(), shape);
  launch(stream,
         DequantizeRows{.codes = from.codes, .scales = from.scales, .format = from.format, .y = y});
  return y;
}

}  // namespace bloomery
