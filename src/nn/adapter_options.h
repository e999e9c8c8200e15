// Low-rank adapters (LoRA): the weights of a model stay as they are, and beside chosen linear
// layers products of two thin matrices learn. The defaults are PEFT's.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace bloomery {

struct AdapterOptions {
  bool enabled = false;
  std::int64_t rank = 8;
  double alpha = 8;
  bool by_root = false;  // the factor is alpha / sqrt(rank) instead of alpha / rank (rsLoRA)
  float dropout = 0;     // of what goes into the products, in training
  // Layers, as "attention.qkv" in all blocks or "blocks.2.attention.qkv" in one; a number behind
  // the name of a fused layer means one of its parts, "attention.qkv.0" the queries. "*": all.
  std::vector<std::string> targets;

  double scale() const {
    const auto r = static_cast<double>(rank);
    return alpha / (by_root ? std::sqrt(r) : r);
  }
};

}  // namespace bloomery
