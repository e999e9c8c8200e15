// Qwen2-MoE: Qwen2 with many small experts, and one that all tokens go to, behind a gate.
#include "models/decoder.h"
#include "models/families.h"
#include "models/llama.h"

namespace bloomery {
namespace {

constexpr TensorRule kExperts[] = {
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
};
constexpr auto kTensors = with_further(kLlamaTensors, kExperts);
constexpr std::string_view kIgnored[] = {".rotary_emb.inv_freq"};

void config(HfConfig& c, ModelOptions& o) {
  llama_like_config(c, o,
                    {.heads = 16,
                     .layers = 24,
                     .hidden = 2048,
                     .ffn = 5632,
                     .groups = 16,
                     .vocabulary = 151936,
                     .max_length = 32768,
                     .extras = {.windows = true}});
  no_drop_config(c, o.moe, {"num_experts"}, 60, 4);
  c.size({"decoder_sparse_step"}, o.moe.interval, 1);
  c.sizes("mlp_only_layers", o.moe.dense_layers);
  c.size({"moe_intermediate_size"}, o.moe.ffn, 1408);
  c.require(c.reading() || o.moe.shared_ffn > 0, "it has no shared expert");
  c.size({"shared_expert_intermediate_size"}, o.moe.shared_ffn, 5632);
  bool renormalise = o.moe.renormalise.value_or(false);
  c.flag("norm_topk_prob", renormalise, false);
  c.fixed(o.moe.renormalise, renormalise, "");
  bool qkv_bias = o.attention.qkv_bias.value_or(true);
  c.flag("qkv_bias", qkv_bias, true);
  c.fixed(o.attention.qkv_bias, qkv_bias, "");
  c.fixed(o.attention.output_bias, false, "the output of its attention has a bias");
  c.fixed(o.mlp.bias, false, "its feed-forward layers have biases");
  c.window_by_layer(o.attention, o.num_layers);
  c.tokens(o.vocabulary.size, {});
}

constexpr HuggingFace kQwen2Moe = {.model_type = "qwen2_moe",
                                   .architecture = "Qwen2MoeForCausalLM",
                                   .prefix = "model.",
                                   .output = "lm_head.weight",
                                   .tensors = kTensors,
                                   .ignored = kIgnored,
                                   .has_experts = true,
                                   .config = config};

void defaults(ModelOptions& o) {
  llama_defaults(o);
  o.attention.qkv_bias = true;
  o.norm.epsilon = 1e-6f;
  no_drop_defaults(o.moe);
  o.moe.num_experts = {60};
  o.moe.topk = 4;
  o.moe.ffn = 1408;
  o.moe.shared_ffn = 5632;
  o.moe.renormalise = false;
}

}  // namespace

const Family& qwen2_moe_family() {
  static constexpr Family kFamily = {.name = "qwen2-moe",
                                     .summary = "Qwen2-MoE, with a shared expert",
                                     .defaults = defaults,
                                     .num_blocks = num_decoder_blocks,
                                     .blocks = decoder_blocks,
                                     .hugging_face = &kQwen2Moe};
  return kFamily;
}

}  // namespace bloomery
