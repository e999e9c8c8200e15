// The interface between the layers of a model: pipeline stages, recomputed segments, gathers of
// parameters and graph capture begin and end between blocks.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "autograd/context.h"

namespace bloomery {

// Dtypes and shapes of what passes between blocks once it is settled, so that a pipeline stage can
// make its receive buffers ahead. A null shape (rank 0) means the field does not travel.
struct ValueShape {
  DType dtype = DType::fp32;
  Shape shape;
};
struct StateShape {
  ValueShape stream, encoder;
};

class Block {
 public:
  virtual ~Block() = default;
  virtual State forward(Context& context, State state) const = 0;
  virtual void collect(ParameterList& parameters) const = 0;
  // Whether it may stand in a segment that is recomputed: the ends of a model may not.
  virtual bool is_layer() const { return true; }
  // Whether only its input is kept in any case, so that recomputing it alone gains nothing.
  virtual bool recomputes_itself(const Context&) const { return false; }
};

using Blocks = std::vector<std::unique_ptr<Block>>;

// Whose tokens the stream stands for: those of the batch or, in a model with an encoder until its
// output is there, those that the encoder reads.
const Batch& batch_of(const Context& context, const State& state);

// Adds what is pending, at boundaries where only the stream may pass.
State add_pending(Context& context, State state);

// Megatron's full recomputation: `uniform` cuts the layers into segments of num_layers, of which
// only the inputs are kept; `block` recomputes the first num_layers layers one by one.
struct RecomputeOptions {
  enum class Method : std::uint8_t { none, uniform, block };
  Method method = Method::none;
  int num_layers = 1;
  bool cheap_values =
      false;  // see ActivationPolicy: beside any method, though of use with none only
};

// Runs consecutive blocks.
State run_blocks(Context& context, State state, std::span<const std::unique_ptr<Block>> blocks,
                 const RecomputeOptions& options);

}  // namespace bloomery
