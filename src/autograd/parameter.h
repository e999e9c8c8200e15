// A parameter is a record: name, the part of the global tensor held here, value, gradient, and
// what initialisation, decay and reduction need to know. Never an index.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "comm/axes.h"
#include "tensor/box.h"
#include "tensor/tensor.h"

namespace bloomery {

struct QuantizedTensor;  // tensor/quantized.h

struct Init {
  enum class Kind : std::uint8_t { zeros, ones, normal, uniform };
  Kind kind = Kind::zeros;
  double scale = 0;  // standard deviation of normal, half width of uniform
};

struct Parameter {
  std::string name;   // unique in the model, the same under every layout
  Box box;            // true extent; padding rows of the local buffer are outside it
  Shape local_shape;  // of value and grad; differs from box.extent by padding rows only
  Init init;
  bool decay = true;    // weight decay applies
  bool frozen = false;  // not trained: no gradient and no state of the optimizer
  int uses = 1;         // gradient contributions per micro-batch, set when the model is built
  AxisSet grad_axes = kReplicaAxes;  // axes whose ranks hold parts of the gradient

  Tensor value;  // in the compute dtype; null while only shards of it exist
  // Of a frozen weight that is held in fewer bits, what stands for its value (QuantizedWeights).
  const QuantizedTensor* codes = nullptr;
  Tensor grad;                // fp32 (fp64 for fp64 values); null while nobody writes to it
  bool grad_written = false;  // the store clears it when the next contribution must overwrite
};

using ParameterList = std::vector<Parameter*>;

// Makes the values of parameters whole for as long as somebody reads them, where only shards of
// them stay (zero/parameter_store.h). A parameter may be acquired several times at once.
class ParameterAccess {
 public:
  virtual ~ParameterAccess() = default;
  virtual void acquire(const ParameterList& parameters) = 0;
  virtual void release(const ParameterList& parameters) = 0;
};

// A parameter held whole or cut along one dimension.
Parameter make_parameter(std::string name, const Box& box, Init init, bool decay);

// The initial numbers of the local buffer (padding rows are zero): functions of (seed, name, global
// index) alone. `numbers` has the parameter's local number of elements.
template <class Real>
void initial_numbers(const Parameter& parameter, std::uint64_t seed, ThreadPool& pool,
                     std::span<Real> numbers);
extern template void initial_numbers(const Parameter&, std::uint64_t, ThreadPool&,
                                     std::span<float>);
extern template void initial_numbers(const Parameter&, std::uint64_t, ThreadPool&,
                                     std::span<double>);

// Fills value with the initial numbers, rounded.
void initialize(Parameter& parameter, std::uint64_t seed, Stream& stream);

}  // namespace bloomery
