// Weights of linear layers that are held in fewer bits. Their parameters have codes and no value:
// `linear` makes what the codes stand for where a product needs it, but without a tape multiplies
// few rows by the codes as they are.
#pragma once

#include <unordered_map>

#include "autograd/parameter.h"
#include "tensor/quantized.h"

namespace bloomery {

class QuantizedWeights {
 public:
  // Memory for the codes, without numbers yet. Values are rounded to `dtype` before they are
  // quantized, and of that when they are made again. The parameters and the stream must outlive
  // this; meanwhile Parameter::codes are these.
  QuantizedWeights(Stream& stream, QuantizedFormat format, DType dtype,
                   const ParameterList& weights);
  ~QuantizedWeights();
  QuantizedWeights(const QuantizedWeights&) = delete;
  QuantizedWeights& operator=(const QuantizedWeights&) = delete;

  const ParameterList& weights() const { return weights_; }
  QuantizedFormat format() const { return format_; }
  DType dtype() const { return dtype_; }
  const QuantizedTensor* find(const Parameter& weight) const;  // null: it is none of them
  std::size_t bytes() const;

  // The rows of what is held here of a weight, in all columns of the whole tensor: of such its
  // codes are made, so that they do not depend on how ranks divide the columns.
  static Box whole_rows(const Parameter& weight);
  static std::int64_t rows_at_once(const Parameter& weight);  // in so many pieces of usual size
  // Rows [first_row, ..) of them, in the dtype.
  void put_rows(const Parameter& weight, std::int64_t first_row, const Tensor& rows);
  void initialize(std::uint64_t seed);  // the initial numbers of the parameters

 private:
  Stream* stream_;
  QuantizedFormat format_;
  DType dtype_;
  ParameterList weights_;
  std::unordered_map<const Parameter*, QuantizedTensor> tensors_;
};

// What a weight's value is, or what its codes stand for, made for the caller.
Tensor value_of(Stream& stream, const Parameter& weight);

}  // namespace bloomery
