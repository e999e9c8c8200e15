// Names of Llama's tensors, and of those of its like with experts, in Hugging Face's files.
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
template <std::size_t kMore>
constexpr auto llama_tensors_and(const TensorRule (&more)[kMore]) {
  constexpr std::size_t kSome = std::size(kLlamaTensors);
  std::array<TensorRule, kSome + kMore> all{};
  for (std::size_t i = 0; i < kSome + kMore; ++i) {
    all[i] = i < kSome ? kLlamaTensors[i] : more[i - kSome];
  }
  return all;
}

inline constexpr auto kMixtralTensors = llama_tensors_and({
    {"blocks.#.moe.router.weight", "layers.#.block_sparse_moe.gate.weight", "n e -> n e"},
    {"blocks.#.moe.experts.up.weight",
     "layers.#.block_sparse_moe.experts.*.w1.weight|layers.#.block_sparse_moe.experts.*.w3.weight",
     "(x i) e -> x i e", "11"},
    {"blocks.#.moe.experts.down.weight", "layers.#.block_sparse_moe.experts.*.w2.weight",
     "(x e) i -> x e i", "1"},
});

inline constexpr auto kQwen2MoeTensors = llama_tensors_and({
    {"blocks.#.moe.router.weight", "layers.#.mlp.gate.weight", "n e -> n e"},
    {"blocks.#.moe.experts.up.weight",
     "layers.#.mlp.experts.*.gate_proj.weight|layers.#.mlp.experts.*.up_proj.weight",
     "(x i) e -> x i e", "11"},
    {"blocks.#.moe.experts.down.weight", "layers.#.mlp.experts.*.down_proj.weight",
     "(x e) i -> x e i", "1"},
    {"blocks.#.moe.shared.up.weight",
     "layers.#.mlp.shared_expert.gate_proj.weight|layers.#.mlp.shared_expert.up_proj.weight",
     "(x u) e -> x u e", "11"},
    {"blocks.#.moe.shared.down.weight", "layers.#.mlp.shared_expert.down_proj.weight",
     "e u -> e u"},
    {"blocks.#.moe.shared_gate.weight", "layers.#.mlp.shared_expert_gate.weight", "1 e -> 1 e"},
});

}  // namespace bloomery
