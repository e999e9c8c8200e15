// What a forward pass reports besides its state: named losses as device scalars, in the order in
// which layers report them. One object per forward pass; a recomputed segment reports nothing.
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
  };

  void report(std::string_view name, Tensor value) { entries_.push_back({name, std::move(value)}); }
  const std::vector<Entry>& entries() const { return entries_; }

  Tensor token_losses;  // accumulation dtype [tokens], not masked; of the head that ran last

 private:
  std::vector<Entry> entries_;
};

}  // namespace bloomery
