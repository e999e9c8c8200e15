// What a forward pass reports besides its state: named device scalars, losses first, else in the
// order in which layers report them; those of one name are to be added up. One object per forward
// pass; a recomputed segment reports nothing.
#pragma once

#include <string_view>
#include <vector>

#include "tensor/tensor.h"

namespace bloomery {

class Metrics {
 public:
  struct Entry {
    std::string_view name;  // a string literal, as logs print it: "lm loss"
    Tensor value;           // accumulation dtype [1]: the mean over this micro-batch
    double factor = 1;      // by which it is to be multiplied
    bool beside = false;    // no loss that the model is trained on by itself
  };

  void report(std::string_view name, Tensor value) {
    entries_.insert(entries_.begin() + num_losses_++, {name, std::move(value)});
  }
  // What is told beside the loss that is trained on: after it, whoever comes first.
  void report_beside(std::string_view name, Tensor value, double factor) {
    entries_.push_back({name, std::move(value), factor, true});
  }
  const std::vector<Entry>& entries() const { return entries_; }

  Tensor token_losses;    // accumulation dtype [tokens], not masked; of the head that ran last
  Tensor answer_logps;    // accumulation dtype [sequences], of pairs of texts (Batch::reference)
  Tensor segment_logits;  // [sequences, 2], of a binary head where the batch has no labels
  Tensor class_logits;    // accumulation dtype [samples, classes], of a task's head
  Tensor context_ranks;   // int32 [sequences]: how many contexts beat a query's own, -1: none is

 private:
  std::vector<Entry> entries_;
  std::ptrdiff_t num_losses_ = 0;
};

}  // namespace bloomery
