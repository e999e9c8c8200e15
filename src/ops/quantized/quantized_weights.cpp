#include "ops/quantized/quantized_weights.h"

#include <algorithm>

#include "ops/quantized/quantized.h"

namespace bloomery {

QuantizedWeights::QuantizedWeights(Stream& stream, QuantizedFormat format, DType dtype,
                                   const ParameterList& weights)
    : stream_(&stream), format_(format), dtype_(dtype), weights_(weights) {
  for (Parameter* const weight : weights) {
    check(weight->local_shape == weight->box.extent, weight->name,
          ": a weight with padding rows cannot be held in ", format);
    const std::int64_t columns = weight->local_shape.back();
    check(columns == weight->box.global.back() || format != QuantizedFormat::nf4 ||
              columns % kNf4Block == 0,
          weight->name, ": its ", columns,
          " input features on a tensor-parallel rank are no whole blocks of ", kNf4Block,
          ", as nf4 has them: choose another --tensor-model-parallel-size, or int8");
    weight->codes =
        &(tensors_[weight] = QuantizedTensor::empty(stream, format, dtype, weight->local_shape));
  }
}

QuantizedWeights::~QuantizedWeights() {
  for (Parameter* const weight : weights_) {
    weight->codes = nullptr;
  }
}

const QuantizedTensor* QuantizedWeights::find(const Parameter& weight) const {
  const auto found = tensors_.find(&weight);
  return found == tensors_.end() ? nullptr : &found->second;
}

std::size_t QuantizedWeights::bytes() const {
  std::size_t sum = 0;
  for (const auto& [weight, tensor] : tensors_) {
    sum += tensor.bytes();
  }
  return sum;
}

Box QuantizedWeights::whole_rows(const Parameter& weight) {
  Box rows = weight.box;
  const int last = rows.global.rank() - 1;
  rows.offset[last] = 0;
  rows.extent[last] = rows.global[last];
  return rows;
}

std::int64_t QuantizedWeights::rows_at_once(const Parameter& weight) {
  constexpr std::int64_t kNumbers = 4 << 20;
  return std::max<std::int64_t>(1, kNumbers / weight.box.global.back());
}

void QuantizedWeights::put_rows(const Parameter& weight, std::int64_t first_row,
                                const Tensor& rows) {
  const int last = weight.box.global.rank() - 1;
  quantize_rows(*stream_, rows, weight.box.offset[last], weight.box.extent[last],
                tensors_.at(&weight), first_row);
}

void QuantizedWeights::initialize(std::uint64_t seed) {
  for (const Parameter* weight : weights_) {
    Parameter rows = *weight;
    rows.box = whole_rows(*weight);
    rows.local_shape = rows.box.extent;
    rows.value = Tensor::empty(*stream_, dtype_, rows.local_shape);
    bloomery::initialize(rows, seed, *stream_);
    put_rows(*weight, 0, rows.value);
  }
}

Tensor value_of(Stream& stream, const Parameter& weight) {
  return weight.codes != nullptr ? dequantized(stream, *weight.codes, weight.local_shape)
                                 : weight.value;
}

}  // namespace bloomery
