// Llama 1, 2 and 3: RMS norms, rotary positions (also scaled), gated SiLU, grouped queries.
#include "models/llama.h"

#include "models/decoder.h"
#include "models/families.h"
#include "models/megatron.h"

namespace bloomery {
namespace {

constexpr std::string_view kIgnored[] = {".rotary_emb.inv_freq"};

void config(HfConfig& c, ModelOptions& o) {
  llama_like_config(c, o, {.heads = 32, .layers = 32, .hidden = 4096, .ffn = 11008});
  attention_bias_config(c, o);
  bool mlp_bias = o.mlp.bias.value_or(false);
  c.flag("mlp_bias", mlp_bias, false);
  c.fixed(o.mlp.bias, mlp_bias, "");
  c.tokens(o.vocabulary.size, {.bos = 1, .eos = 2});
}

constexpr HuggingFace kLlama = {.model_type = "llama",
                                .architecture = "LlamaForCausalLM",
                                .prefix = "model.",
                                .output = "lm_head.weight",
                                .tensors = kLlamaTensors,
                                .ignored = kIgnored,
                                .config = config};

}  // namespace

void llama_like_config(HfConfig& c, ModelOptions& o, const LlamaDefaults& d) {
  c.size({"vocab_size"}, o.vocabulary.size, d.vocabulary);
  c.size({"hidden_size"}, o.hidden_size, d.hidden);
  c.size({"num_hidden_layers"}, o.num_layers, d.layers);
  c.size({"num_attention_heads"}, o.attention.num_heads, d.heads);
  c.size({"num_key_value_heads"}, o.attention.num_groups,
         d.groups > 0 ? d.groups : o.attention.num_heads);
  c.size({"head_dim"}, o.attention.head_dim,
         d.head_dim > 0 ? d.head_dim : o.hidden_size / o.attention.num_heads);
  c.size({"intermediate_size"}, o.mlp.ffn, d.ffn);
  c.size({"max_position_embeddings"}, o.positions.max_length, d.max_length);
  c.activation("hidden_act", o.mlp.kind, d.activation, true);
  c.number("rms_norm_eps", o.norm.epsilon, 1e-6, 0, 1);
  c.number("initializer_range", o.init.std, 0.02, 0, 1e6);
  c.number("attention_dropout", o.attention.dropout, 0, 0, 1);
  c.opposite("tie_word_embeddings", o.vocabulary.untied, d.tied);
  c.none("quantization_config", "quantized weights are not supported");
  c.fixed(o.positions.rotary, true, "its positions are not rotary");
  c.rotary(o.positions);
  c.fixed(o.positions.rotary_fraction, 1, "only a part of each head is rotated");
  c.fixed(o.positions.rotary_interleaved, false, "its rotated channels are interleaved");
  c.fixed(o.norm.kind, NormKind::rms, "its norms are not RMS norms");
  c.fixed(
      o.norm.one_plus_gain, d.one_plus_gain,
      d.one_plus_gain ? "its norms multiply by the gain alone" : "its norms multiply by 1 + gain");
  c.extras(o, d.extras);
  c.require(o.mlp.gated(), "its feed-forward layers are not gated");
  c.fixed(o.residual.parallel, false, "attention and feed-forward layer stand side by side");
  c.fixed(o.residual.after_norm, false, "its residuals branch off after the norm");
  c.absent(o.residual.dropout, 0);
}

void attention_bias_config(HfConfig& c, ModelOptions& o) {
  bool attention_bias = o.attention.qkv_bias.value_or(false);
  c.flag("attention_bias", attention_bias, false);
  c.fixed(o.attention.qkv_bias, attention_bias, "");
  c.fixed(o.attention.output_bias, attention_bias,
          "only one of queries, keys and values and of attention's output has biases");
}

const Family& llama_family() {
  static constexpr Family kFamily = {.name = "llama",
                                     .summary = "Llama 1, 2 and 3",
                                     .defaults = llama_defaults,
                                     .num_blocks = num_decoder_blocks,
                                     .blocks = decoder_blocks,
                                     .hugging_face = &kLlama,
                                     .megatron = kMegatronDecoder};
  return kFamily;
}

void llama_defaults(ModelOptions& o) {
  o.bias = false;
  o.mlp.kind = MlpKind::swiglu;
  o.norm = {.kind = NormKind::rms};
  o.positions.rotary = true;
  o.vocabulary.untied = true;
}

}  // namespace bloomery
