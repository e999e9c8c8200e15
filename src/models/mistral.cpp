// Mistral: Llama whose queries see a window of the last keys.
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
                     .ffn = 14336,
                     .groups = 8,
                     .max_length = 4096 * 32,
                     .extras = {.windows = true}});
  c.window(o.attention);
  c.none("layer_types", "all its layers have the same window, others are of another model_type");
  c.fixed(o.attention.qkv_bias, false, "its queries, keys and values have biases");
  c.fixed(o.attention.output_bias, false, "the output of its attention has a bias");
  c.fixed(o.mlp.bias, false, "its feed-forward layers have biases");
  c.tokens(o.vocabulary.size, {.bos = 1, .eos = 2});
}

constexpr HuggingFace kMistral = {.model_type = "mistral",
                                  .architecture = "MistralForCausalLM",
                                  .prefix = "model.",
                                  .output = "lm_head.weight",
                                  .tensors = kLlamaTensors,
                                  .ignored = kIgnored,
                                  .config = config};

void defaults(ModelOptions& o) {
  llama_defaults(o);
  o.attention.window = 4096;
}

}  // namespace

const Family& mistral_family() {
  static constexpr Family kFamily = {.name = "mistral",
                                     .summary = "Mistral, with a sliding window",
                                     .defaults = defaults,
                                     .num_blocks = num_decoder_blocks,
                                     .blocks = decoder_blocks,
                                     .hugging_face = &kMistral};
  return kFamily;
}

}  // namespace bloomery
