// Llama and the families like it: one list of blocks, one set of names in Hugging Face's files, and
// a row of llama_families.cpp for each with what is its own.
#pragma once

#include "models/family.h"

namespace bloomery {

enum class AttentionBiases {
  none,
  queries_keys_values,  // of all models: these three, not the output
  by_attention_bias,    // attention_bias says it of all four
  by_qkv_bias,          // qkv_bias says it of the three, and is true by default
};

enum class HfWindows {
  none,
  refused,     // sliding_window must be null
  all_layers,  // sliding_window
  by_layer,    // use_sliding_window, layer_types
};

// Experts that drop no token, in place of MLPs.
struct LlamaExperts {
  const char* key;                       // of their number, 60 for instance
  std::int64_t count, topk;              // where config.json does not say them
  std::int64_t ffn = 0;                  // of one of them; 0: as the MLPs'
  std::int64_t shared_ffn = 0;           // of one that all tokens go to; 0: there is none
  std::optional<bool> renormalise = {};  // none: where a token takes several
  // What the form says of layers, widths and gates.
  void (*config)(HfConfig& config, ModelOptions& options);
  std::span<const TensorRule> tensors;  // with those of the other layers
};

struct LlamaLike {
  std::string_view name, summary;             // of Family
  std::string_view model_type, architecture;  // of HuggingFace
  // What transformers takes where config.json does not say it.
  std::int64_t heads = 32, layers = 32, hidden = 4096, ffn = 11008;
  std::int64_t groups = 0;  // 0: as many as heads
  std::int64_t vocabulary = 32000, max_length = 2048;
  std::int64_t head_dim = 0;  // 0: hidden / heads
  const char* activation = "silu";
  HfTokenIds tokens = {.bos = 1, .eos = 2};
  // What all its models are, or which keys say it.
  AttentionBiases biases = AttentionBiases::none;
  bool mlp_bias_key = false;  // mlp_bias says it; else there is none
  HfWindows windows = HfWindows::none;
  bool head_norm = false;
  bool one_plus_gain = false;      // in the norms
  bool scaled_embeddings = false;  // by sqrt(hidden size)
  bool tied = false;               // by default
  // Where a run of this family starts, beyond what Llama is.
  MlpKind gates = MlpKind::swiglu;
  float epsilon = NormOptions().epsilon;
  double rotary_base = PositionOptions().rotary_base;
  std::int64_t window = 0;
  const LlamaExperts* experts = nullptr;
  // What else its form says, before the ids of tokens. May be null.
  void (*further)(HfConfig& config, ModelOptions& options) = nullptr;
  std::span<const MegatronTensor> megatron = {};
};

void llama_config(HfConfig& config, ModelOptions& options, const LlamaLike& row);
void llama_defaults(ModelOptions& options, const LlamaLike& row);

}  // namespace bloomery
