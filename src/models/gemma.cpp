// Gemma: Llama with norms that multiply by 1 + gain, embeddings scaled by sqrt(hidden size), GELU
// gates and wide heads.
#include "models/decoder.h"
#include "models/families.h"
#include "models/llama.h"

namespace bloomery {
namespace {

constexpr std::string_view kIgnored[] = {".rotary_emb.inv_freq"};

void config(HfConfig& c, ModelOptions& o) {
  c.require(c.reading() || o.mlp.kind != MlpKind::geglu_erf,
            "its gates are GELU by the error function");
  llama_like_config(c, o,
                    {.heads = 16,
                     .layers = 28,
                     .hidden = 3072,
                     .ffn = 24576,
                     .groups = 16,
                     .vocabulary = 256000,
                     .max_length = 8192,
                     .head_dim = 256,
                     .activation = "gelu_pytorch_tanh",
                     .tied = true,
                     .one_plus_gain = true,
                     .extras = {.scaled_embeddings = true}});
  if (o.mlp.kind == MlpKind::geglu_erf) {  // "gelu" stands for the tanh formula in its files
    o.mlp.kind = MlpKind::geglu_tanh;
  }
  attention_bias_config(c, o);
  c.fixed(o.mlp.bias, false, "its feed-forward layers have biases");
  c.only("use_bidirectional_attention", false, "attention to later keys is not supported");
  c.tokens(o.vocabulary.size, {.bos = 2, .eos = 1, .pad = 0});
}

constexpr HuggingFace kGemma = {.model_type = "gemma",
                                .architecture = "GemmaForCausalLM",
                                .prefix = "model.",
                                .output = "lm_head.weight",
                                .tensors = kLlamaTensors,
                                .ignored = kIgnored,
                                .config = config};

void defaults(ModelOptions& o) {
  llama_defaults(o);
  o.mlp.kind = MlpKind::geglu_tanh;
  o.norm.one_plus_gain = true;
  o.norm.epsilon = 1e-6f;
  o.vocabulary.untied = false;
  o.vocabulary.scaled = true;
}

}  // namespace

const Family& gemma_family() {
  static constexpr Family kFamily = {.name = "gemma",
                                     .summary = "Gemma 1",
                                     .defaults = defaults,
                                     .num_blocks = num_decoder_blocks,
                                     .blocks = decoder_blocks,
                                     .hugging_face = &kGemma};
  return kFamily;
}

}  // namespace bloomery
