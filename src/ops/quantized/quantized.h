// Between numbers and matrices in fewer bits (tensor/quantized.h).
#pragma once

#include "device/launch.h"
#include "tensor/quantized.h"

namespace bloomery {

// The codes of columns [first_column, first_column + columns) of x, and the scales. Those of int8
// and fp8 are of whole rows of x: so what several ranks make of their columns does not depend on
// how these are divided. Of nf4 blocks are counted from first_column. NaN or infinity in x makes
// the numbers of its scale NaN.
struct QuantizeRows {
  ConstView x;  // [rows, at least columns]
  std::int64_t first_column = 0, columns = 0;
  QuantizedFormat format = QuantizedFormat::none;
  View codes, scales;  // as in QuantizedTensor, of the rows of x
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const QuantizeRows&);
void run(OnCuda, Stream&, const QuantizeRows&);

// y = what the codes stand for, in the dtype of the scales.
struct DequantizeRows {
  ConstView codes, scales;
  QuantizedFormat format = QuantizedFormat::none;
  View y;  // [rows, columns]
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const DequantizeRows&);
void run(OnCuda, Stream&, const DequantizeRows&);

// Writes rows [first_row, first_row + rows of x) of a matrix with so many columns, which are those
// of x from first_column on.
void quantize_rows(Stream& stream, const Tensor& x, std::int64_t first_column, std::int64_t columns,
                   const QuantizedTensor& to, std::int64_t first_row = 0);
Tensor dequantized(Stream& stream, const QuantizedTensor& from, const Shape& shape);

}  // namespace bloomery
