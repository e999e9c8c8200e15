// The integer tensors of one micro-batch and the device scalars of a step. Every stage loads what
// it needs; they are never sent between stages. Shapes of activations come from here.
#pragma once

#include "tensor/tensor.h"

namespace bloomery {

// Tokens are ordered [sequence, position]: token t is position t % length of sequence t / length.
struct Batch {
  std::int64_t num_sequences = 0;
  std::int64_t length = 0;

  Tensor tokens;     // int32 [tokens]
  Tensor labels;     // int32 [tokens]
  Tensor loss_mask;  // fp32 [tokens]; null: all ones
  Tensor positions;  // int32 [tokens], position ids (they restart at documents if so asked)

  // Keys that a query may see: [key_begin, key_end) per token, non-decreasing within a sequence;
  // null: all. Documents and padding are both such ranges.
  Tensor key_begin, key_end;  // int32 [tokens]

  // Coordinates for dropout: never functions of rank or micro-batch number.
  Tensor samples;  // int64 [num_sequences], index of the consumed sample
  Tensor places;   // int32 [length], position in the whole sequence of each local position

  // fp32 [1]: loss scale / number of micro-batches, by which the loss gradient is multiplied;
  // null: one.
  Tensor grad_scale;

  // int32: tokens whose logits are wanted; null: all.
  Tensor output_rows;

  std::int64_t num_tokens() const { return num_sequences * length; }
};

}  // namespace bloomery
