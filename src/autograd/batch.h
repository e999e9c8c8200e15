// The integer tensors of one micro-batch and the device scalars of a step. Every stage loads what
// it needs; they are never sent between stages. Shapes of activations come from here.
#pragma once

#include <memory>

#include "tensor/tensor.h"

namespace bloomery {

// Consecutive tokens of a batch: those that the rows of an activation stand for, where a rank holds
// a part of them.
struct TokenRange {
  static constexpr std::int64_t kRest = -1;
  std::int64_t first = 0, count = kRest;  // kRest: all from `first` on
};

// Tokens are ordered [sequence, position]: token t is position t % length of sequence t / length.
struct Batch {
  std::int64_t num_sequences = 0;
  std::int64_t length = 0;

  Tensor tokens;       // int32 [tokens]
  Tensor labels;       // int32 [tokens]
  Tensor loss_mask;    // fp32 [tokens]; null: all ones
  Tensor positions;    // int32 [tokens], position ids (they restart at documents if so asked)
  Tensor token_types;  // int32 [tokens], for models that embed them (sentence A or B); null: none

  Tensor is_random;  // int32 [num_sequences]: of two segments, 1 if they were swapped; null: none

  // Of pairs of texts, of which the first is preferred, one after another: fp32 [num_sequences],
  // the log-probability of each one's answer under a reference model; null: they are no pairs.
  Tensor reference;

  // Keys that a query may see: those at places [key_begin, key_end) of its sequence, per token,
  // non-decreasing within a sequence; null: all. Documents and padding are both such ranges.
  Tensor key_begin, key_end;  // int32 [tokens]

  // The coordinates of a token are (sample, place), never functions of rank or micro-batch number:
  // the index of the consumed sample, and the position in that whole sample, of which a rank may
  // hold any part. Dropout and masks are functions of them alone.
  Tensor samples;  // int64 [num_sequences], or [tokens]
  Tensor places;   // int32 [length], or [tokens]

  // The whole sequences, where the ranks of the context axis hold a part of each: what attention
  // reads of them, which among a ring is the places alone, rank after rank. Null: they are here.
  std::shared_ptr<const Batch> whole;

  // fp32 [1]: loss scale / number of micro-batches, by which the loss gradient is multiplied;
  // null: one.
  Tensor grad_scale;

  // int32: tokens whose logits are wanted; null: all.
  Tensor output_rows;

  // What the encoder of a model reads, of as many or some times as many sequences; null: none.
  // Keys of its output that a token of this batch may see are given like key_begin and key_end.
  std::shared_ptr<const Batch> encoder;
  Tensor encoder_key_begin, encoder_key_end;  // int32 [tokens]

  // Of the samples of a task, each of which is one sequence or, as a choice, several neighbours.
  Tensor classes;         // int32 [samples]: the right class, or sequence; null: none
  Tensor scores;          // fp32 [samples]: what a regression should give; null: none
  Tensor sample_weights;  // fp32 [samples], of their losses, or 0 for an absent text; null: all 1

  std::int64_t num_tokens() const { return num_sequences * length; }
  // Of the sequences of which parts are here.
  std::int64_t whole_length() const { return whole ? whole->whole_length() : length; }
};

}  // namespace bloomery
