// What flows through a model: data, and while training a slot for its gradient.
#pragma once

#include <memory>

#include "base/random.h"
#include "tensor/tensor.h"

namespace bloomery {

// Filled during backward. A producer that ends in an elementwise function of `epilogue_input` may
// offer its derivative (`epilogue` is the Activation's number, see ops/activation). A consumer
// whose gradient kernel can multiply by it while writing does so and writes to `epilogue_grad`
// instead of `grad`; all other consumers ignore the offer. The producer adds the two.
struct GradSlot {
  DType dtype = DType::fp32;
  Shape shape;
  Tensor grad;  // null until the first writer asks for it
  // Held by every slot that reads the same gradient buffer (see Tape::share); null: only this one.
  std::shared_ptr<const void> sharers;
  int epilogue = 0;
  Tensor epilogue_input;
  Tensor epilogue_grad;  // already multiplied by the derivative; null until the first writer asks
  // A producer with a bias sets the first. A consumer that alone writes the gradient and whose
  // kernel can add up its rows by the way leaves [parts, columns] in the second, in the
  // accumulation dtype: their column sums are those of the gradient as stored. Any other write
  // clears it.
  bool wants_column_sums = false;
  Tensor column_sums;
};

// Null when no gradient is wanted. Backward closures capture slots, not values, unless they need
// the data: a captured value would keep its data alive.
using Slot = std::shared_ptr<GradSlot>;

struct Value {
  Tensor data;
  Slot slot;

  explicit operator bool() const { return static_cast<bool>(data); }
  const Shape& shape() const { return data.shape(); }
  DType dtype() const { return data.dtype(); }
  bool wants_grad() const { return slot != nullptr; }
};

// What passes between blocks. The branch output not yet added to the stream travels beside it, so
// that the addition fuses with the next norm.
struct State {
  Value stream;   // residual stream [tokens, hidden]
  Value pending;  // branch output still to be added, or null
  Value encoder;  // encoder output on its way through decoder blocks, or null

  // Dropout of the pending branch, applied when it is added: its probability and key.
  float pending_dropout = 0;
  RandomKey pending_key = 0;
};

}  // namespace bloomery
