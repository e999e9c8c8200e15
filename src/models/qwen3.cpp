// Qwen3: Llama with norms of query and key heads, which may be of any width, and sliding windows in
// some layers.
#include "models/decoder.h"
#include "models/families.h"
#include "models/llama.h"

namespace bloomery {
namespace {

constexpr std::string_view kIgnored[] = {".rotary_emb.inv_freq"};

void config(HfConfig& c, ModelOptions& o) {
  llama_like_config(c, o,
                    {.heads = 32,
                     .layers = 32,
                     .hidden = 4096,
                     .ffn = 22016,
                     .groups = 32,
                     .vocabulary = 151936,
                     .max_length = 32768,
                     .head_dim = 128,
                     .extras = {.windows = true, .head_norms = true}});
  attention_bias_config(c, o);
  c.fixed(o.mlp.bias, false, "its feed-forward layers have biases");
  c.window_by_layer(o.attention, o.num_layers);
  c.tokens(o.vocabulary.size, {});
}

constexpr HuggingFace kQwen3 = {.model_type = "qwen3",
                                .architecture = "Qwen3ForCausalLM",
                                .prefix = "model.",
                                .output = "lm_head.weight",
                                .tensors = kLlamaTensors,
                                .ignored = kIgnored,
                                .config = config};

void defaults(ModelOptions& o) {
  llama_defaults(o);
  o.attention.head_norm = true;
  o.norm.epsilon = 1e-6f;
  o.positions.rotary_base = 1e6;
}

}  // namespace

const Family& qwen3_family() {
  static constexpr Family kFamily = {.name = "qwen3",
                                     .summary = "Qwen3",
                                     .defaults = defaults,
                                     .num_blocks = num_decoder_blocks,
                                     .blocks = decoder_blocks,
                                     .hugging_face = &kQwen3};
  return kFamily;
}

}  // namespace bloomery
