#include <algorithm>

#include "checkpoint/hf/gpt2.h"

namespace bloomery {
namespace {

// transformers' Conv1D keeps weights as [in, out], and its fused QKV has all queries first; ours
// are [out, in], with query, key and value of a head together.
constexpr TensorRule kRules[] = {
    {"embedding.tokens.weight", "wte.weight", "v e -> v e"},
    {"embedding.positions.weight", "wpe.weight", "p e -> p e"},
    {"blocks.#.norm_1.gain", "h.#.ln_1.weight", "e -> e"},
    {"blocks.#.norm_1.bias", "h.#.ln_1.bias", "e -> e"},
    {"blocks.#.attention.qkv.weight", "h.#.attn.c_attn.weight", "e (t h d) -> h t d e"},
    {"blocks.#.attention.qkv.bias", "h.#.attn.c_attn.bias", "(t h d) -> h t d"},
    {"blocks.#.attention.projection.weight", "h.#.attn.c_proj.weight", "q e -> e q"},
    {"blocks.#.attention.projection.bias", "h.#.attn.c_proj.bias", "e -> e"},
    {"blocks.#.norm_2.gain", "h.#.ln_2.weight", "e -> e"},
    {"blocks.#.norm_2.bias", "h.#.ln_2.bias", "e -> e"},
    {"blocks.#.mlp.up.weight", "h.#.mlp.c_fc.weight", "e f -> f e"},
    {"blocks.#.mlp.up.bias", "h.#.mlp.c_fc.bias", "f -> f"},
    {"blocks.#.mlp.down.weight", "h.#.mlp.c_proj.weight", "f e -> e f"},
    {"blocks.#.mlp.down.bias", "h.#.mlp.c_proj.bias", "e -> e"},
    {"final_norm.gain", "ln_f.weight", "e -> e"},
    {"final_norm.bias", "ln_f.bias", "e -> e"},
    {"head.weight", kGpt2Output, "v e -> v e"},
};

}  // namespace

std::vector<TensorMap> gpt2_tensors(const GptOptions& options) {
  const std::span<const TensorRule> all(kRules);
  return expand(options.tied ? all.first(all.size() - 1) : all, options);
}

bool is_gpt2_mask(std::string_view name) {
  if (!name.starts_with("h.")) {
    return false;
  }
  name.remove_prefix(2);
  const std::size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
  name.remove_prefix(digits);
  return digits > 0 && (name == ".attn.bias" || name == ".attn.masked_bias");
}

}  // namespace bloomery
