// A mixture of experts in place of the MLP of some layers. The defaults are Megatron-DeepSpeed's.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace bloomery {

// residual: an MLP beside the experts, both in weights that are learned.
enum class MoeKind : std::uint8_t { standard, residual };

struct MoeOptions {
  std::vector<std::int64_t> num_experts = {1};  // of each layer with a mixture, or of all; 1: none
  std::int64_t interval = 2;                    // every so many-th layer has a mixture
  std::vector<std::int64_t> dense_layers;       // those, from 0, that have none all the same
  std::int64_t ffn = 0;                         // width of an expert; 0: that of the MLP
  std::int64_t shared_ffn = 0;  // of an expert for every token, behind a logistic gate; 0: none
  MoeKind kind = MoeKind::standard;

  std::int64_t topk = 1;
  std::optional<bool> renormalise;          // gates sum to one; none: where topk is above 1
  std::optional<bool> balance_all_choices;  // none: where topk is above 2; else first choices
  bool drop_tokens = true;
  double train_capacity = 1, eval_capacity = 1;
  std::int64_t min_capacity = 4;
  bool random_selection = true;  // of one choice: whom a full expert serves
  bool sample_second = true;     // of two choices: the second one
  double jitter = 0;             // of what the router sees in training
  double loss_coefficient = 0.1, z_coefficient = 0;

  bool any() const;
  // Of a layer, counted from 0; 1: it has an MLP.
  std::int64_t experts_of(std::int64_t layer) const;
};

}  // namespace bloomery
