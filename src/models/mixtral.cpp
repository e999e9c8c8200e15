// Mixtral: Llama with experts in every layer, of which each token takes some, without dropping.
#include "models/decoder.h"
#include "models/families.h"
#include "models/llama.h"

namespace bloomery {
namespace {

constexpr TensorRule kExperts[] = {
    {"blocks.#.moe.router.weight", "layers.#.block_sparse_moe.gate.weight", "n e -> n e"},
    {"blocks.#.moe.experts.up.weight",
     "layers.#.block_sparse_moe.experts.*.w1.weight|layers.#.block_sparse_moe.experts.*.w3.weight",
     "(x i) e -> x i e", "11"},
    {"blocks.#.moe.experts.down.weight", "layers.#.block_sparse_moe.experts.*.w2.weight",
     "(x e) i -> x e i", "1"},
};
constexpr auto kTensors = with_further(kLlamaTensors, kExperts);
constexpr std::string_view kIgnored[] = {".rotary_emb.inv_freq"};

void config(HfConfig& c, ModelOptions& o) {
  llama_like_config(
      c, o,
      {.heads = 32, .layers = 32, .hidden = 4096, .ffn = 14336, .groups = 8, .max_length = 131072});
  no_drop_config(c, o.moe, {"num_local_experts"}, 8, 2);
  c.fixed(o.moe.interval, 1, "not all of its layers have experts");
  c.fixed(o.moe.dense_layers, {}, "not all of its layers have experts");
  c.fixed(o.moe.ffn, o.mlp.ffn, "its experts have a width of their own");
  c.fixed(o.moe.shared_ffn, 0, "it has a shared expert");
  c.fixed(o.moe.renormalise, true, "the gates of a token do not sum to one");
  c.fixed(o.attention.qkv_bias, false, "its queries, keys and values have biases");
  c.fixed(o.attention.output_bias, false, "the output of its attention has a bias");
  c.fixed(o.mlp.bias, false, "its feed-forward layers have biases");
  c.none("sliding_window", "sliding windows are not supported");
  c.tokens(o.vocabulary.size, {.bos = 1, .eos = 2});
}

constexpr HuggingFace kMixtral = {.model_type = "mixtral",
                                  .architecture = "MixtralForCausalLM",
                                  .prefix = "model.",
                                  .output = "lm_head.weight",
                                  .tensors = kTensors,
                                  .ignored = kIgnored,
                                  .has_experts = true,
                                  .config = config};

void defaults(ModelOptions& o) {
  llama_defaults(o);
  o.positions.rotary_base = 1e6;
  no_drop_defaults(o.moe);
  o.moe.num_experts = {8};
  o.moe.topk = 2;
}

}  // namespace

void no_drop_defaults(MoeOptions& o) {
  o.interval = 1;
  o.drop_tokens = o.sample_second = false;
  o.balance_all_choices = true;
  o.loss_coefficient = 0.001;
}

void no_drop_config(HfConfig& c, MoeOptions& o, std::initializer_list<const char*> experts_key,
                    std::int64_t experts, std::int64_t topk) {
  std::int64_t count = o.num_experts.front();
  c.size(experts_key, count, experts);
  c.fixed(o.num_experts, {count}, "its layers have different numbers of experts");
  c.size({"num_experts_per_tok"}, o.topk, topk);
  c.number("router_aux_loss_coef", o.loss_coefficient, 0.001, 0, 1e6);
  c.fixed(o.kind, MoeKind::standard, "its experts have an MLP beside them (mlp-type residual)");
  // What only training asks for.
  c.absent(o.drop_tokens, false);
  c.absent(o.sample_second, false);
  c.absent(o.balance_all_choices, true);
}

const Family& mixtral_family() {
  static constexpr Family kFamily = {.name = "mixtral",
                                     .summary = "Mixtral: Llama with experts",
                                     .defaults = defaults,
                                     .num_blocks = num_decoder_blocks,
                                     .blocks = decoder_blocks,
                                     .hugging_face = &kMixtral};
  return kFamily;
}

}  // namespace bloomery
