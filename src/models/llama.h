// What Llama and the families like it share in Hugging Face's files.
#pragma once

#include <array>

#include "models/family.h"

namespace bloomery {

inline constexpr TensorRule kLlamaTensors[] = {
    {"embedding.tokens.weight", "embed_tokens.weight", "v e -> v e"},
    {"blocks.#.norm_1.gain", "layers.#.input_layernorm.weight", "e -> e"},
    {"blocks.#.attention.qkv.weight",
     "layers.#.self_attn.q_proj.weight|layers.#.self_attn.k_proj.weight|"
     "layers.#.self_attn.v_proj.weight",
     "(m x d) e -> m x d e", "g11"},
    {"blocks.#.attention.qkv.bias",
     "layers.#.self_attn.q_proj.bias|layers.#.self_attn.k_proj.bias|"
     "layers.#.self_attn.v_proj.bias",
     "(m x d) -> m x d", "g11"},
    {"blocks.#.attention.query_norm.gain", "layers.#.self_attn.q_norm.weight", "d -> d"},
    {"blocks.#.attention.key_norm.gain", "layers.#.self_attn.k_norm.weight", "d -> d"},
    {"blocks.#.attention.projection.weight", "layers.#.self_attn.o_proj.weight", "e q -> e q"},
    {"blocks.#.attention.projection.bias", "layers.#.self_attn.o_proj.bias", "e -> e"},
    {"blocks.#.norm_2.gain", "layers.#.post_attention_layernorm.weight", "e -> e"},
    {"blocks.#.mlp.up.weight", "layers.#.mlp.gate_proj.weight|layers.#.mlp.up_proj.weight",
     "(x f) e -> x f e", "11"},
    {"blocks.#.mlp.up.bias", "layers.#.mlp.gate_proj.bias|layers.#.mlp.up_proj.bias",
     "(x f) -> x f", "11"},
    {"blocks.#.mlp.down.weight", "layers.#.mlp.down_proj.weight", "e f -> e f"},
    {"blocks.#.mlp.down.bias", "layers.#.mlp.down_proj.bias", "e -> e"},
    {"final_norm.gain", "norm.weight", "e -> e"},
    {"head.weight", "lm_head.weight", "v e -> v e"},
};

// The same rules and further ones, as one list.
template <std::size_t kSome, std::size_t kMore>
constexpr std::array<TensorRule, kSome + kMore> with_further(const TensorRule (&some)[kSome],
                                                             const TensorRule (&more)[kMore]) {
  std::array<TensorRule, kSome + kMore> all{};
  for (std::size_t i = 0; i < kSome + kMore; ++i) {
    all[i] = i < kSome ? some[i] : more[i - kSome];
  }
  return all;
}

// What transformers takes where config.json does not say it.
struct LlamaDefaults {
  std::int64_t heads, layers, hidden, ffn;
  std::int64_t groups = 0;  // 0: as many as heads
  std::int64_t vocabulary = 32000, max_length = 2048;
  std::int64_t head_dim = 0;  // 0: hidden / heads
  const char* activation = "silu";
  bool tied = false;
  bool one_plus_gain = false;  // in the norms of all its models
  HfExtras extras;
};

// Everything but biases, windows and token ids.
void llama_like_config(HfConfig& config, ModelOptions& options, const LlamaDefaults& defaults);
// attention_bias: of queries, keys, values and attention's output together.
void attention_bias_config(HfConfig& config, ModelOptions& options);
void llama_defaults(ModelOptions& options);

// Experts that drop no token, as transformers' models have them, with its defaults for their number
// and for how many a token takes.
void no_drop_defaults(MoeOptions& options);
void no_drop_config(HfConfig& config, MoeOptions& options,
                    std::initializer_list<const char*> experts_key, std::int64_t experts,
                    std::int64_t topk);

}  // namespace bloomery
