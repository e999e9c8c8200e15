// Qwen2 and Qwen2.5: Llama with biases on queries, keys and values alone, and sliding windows in
// some layers.
#include "models/decoder.h"
#include "models/families.h"
#include "models/llama.h"
#include "models/megatron.h"

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
                     .extras = {.windows = true}});
  c.fixed(o.attention.qkv_bias, true, "its queries, keys and values have no biases");
  c.fixed(o.attention.output_bias, false, "the output of its attention has a bias");
  c.fixed(o.mlp.bias, false, "its feed-forward layers have biases");
  c.window_by_layer(o.attention, o.num_layers);
  c.tokens(o.vocabulary.size, {});
}

constexpr HuggingFace kQwen2 = {.model_type = "qwen2",
                                .architecture = "Qwen2ForCausalLM",
                                .prefix = "model.",
                                .output = "lm_head.weight",
                                .tensors = kLlamaTensors,
                                .ignored = kIgnored,
                                .config = config};

void defaults(ModelOptions& o) {
  llama_defaults(o);
  o.attention.qkv_bias = true;
  o.norm.epsilon = 1e-6f;
  o.positions.rotary_base = 1e6;
}

}  // namespace

const Family& qwen2_family() {
  static constexpr Family kFamily = {.name = "qwen2",
                                     .summary = "Qwen2 and Qwen2.5",
                                     .defaults = defaults,
                                     .num_blocks = num_decoder_blocks,
                                     .blocks = decoder_blocks,
                                     .hugging_face = &kQwen2,
                                     .megatron = kMegatronDecoder};
  return kFamily;
}

}  // namespace bloomery
