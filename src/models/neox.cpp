// GPT-NeoX, Pythia, open-calm: partly rotated heads, attention and MLP side by side (or not).
#include "models/decoder.h"
#include "models/family.h"
#include "models/megatron.h"

namespace bloomery {
namespace {

constexpr TensorRule kTensors[] = {
    {"embedding.tokens.weight", "embed_in.weight", "v e -> v e"},
    {"blocks.#.norm_1.gain", "layers.#.input_layernorm.weight", "e -> e"},
    {"blocks.#.norm_1.bias", "layers.#.input_layernorm.bias", "e -> e"},
    {"blocks.#.attention.qkv.weight", "layers.#.attention.query_key_value.weight",
     "(h t d) e -> h t d e"},
    {"blocks.#.attention.qkv.bias", "layers.#.attention.query_key_value.bias", "(h t d) -> h t d"},
    {"blocks.#.attention.projection.weight", "layers.#.attention.dense.weight", "e q -> e q"},
    {"blocks.#.attention.projection.bias", "layers.#.attention.dense.bias", "e -> e"},
    {"blocks.#.norm_2.gain", "layers.#.post_attention_layernorm.weight", "e -> e"},
    {"blocks.#.norm_2.bias", "layers.#.post_attention_layernorm.bias", "e -> e"},
    {"blocks.#.mlp.up.weight", "layers.#.mlp.dense_h_to_4h.weight", "f e -> f e"},
    {"blocks.#.mlp.up.bias", "layers.#.mlp.dense_h_to_4h.bias", "f -> f"},
    {"blocks.#.mlp.down.weight", "layers.#.mlp.dense_4h_to_h.weight", "e f -> e f"},
    {"blocks.#.mlp.down.bias", "layers.#.mlp.dense_4h_to_h.bias", "e -> e"},
    {"final_norm.gain", "final_layer_norm.weight", "e -> e"},
    {"final_norm.bias", "final_layer_norm.bias", "e -> e"},
    {"head.weight", "embed_out.weight", "v e -> v e"},
};

constexpr std::string_view kIgnored[] = {".attention.bias", ".attention.masked_bias",
                                         ".rotary_emb.inv_freq"};

void config(HfConfig& c, ModelOptions& o) {
  c.size({"vocab_size"}, o.vocabulary.size, 50432);
  c.size({"hidden_size"}, o.hidden_size, 6144);
  c.size({"num_hidden_layers"}, o.num_layers, 44);
  c.size({"num_attention_heads"}, o.attention.num_heads, 64);
  c.size({"intermediate_size"}, o.mlp.ffn, 24576);
  c.size({"max_position_embeddings"}, o.positions.max_length, 2048);
  c.activation("hidden_act", o.mlp.kind, "gelu", false);
  c.number("layer_norm_eps", o.norm.epsilon, 1e-5, 0, 1);
  c.number("initializer_range", o.init.std, 0.02, 0, 1e6);
  c.number("hidden_dropout", o.residual.dropout, 0, 0, 1);
  c.number("attention_dropout", o.attention.dropout, 0, 0, 1);
  c.flag("use_parallel_residual", o.residual.parallel, true);
  c.opposite("tie_word_embeddings", o.vocabulary.untied, false);
  c.none("quantization_config", "quantized weights are not supported");
  c.tokens(o.vocabulary.size, {.bos = 0, .eos = 2});
  c.fixed(o.positions.rotary, true, "its positions are not rotary");
  c.rotary(o.positions,
           {.base = "rotary_emb_base", .fraction = "rotary_pct", .default_fraction = 0.25});
  c.fixed(o.positions.rotary_interleaved, false, "its rotated channels are interleaved");
  bool attention_bias = o.attention.qkv_bias.value_or(true);
  c.flag("attention_bias", attention_bias, true);
  c.fixed(o.attention.qkv_bias, attention_bias, "");
  c.fixed(o.attention.output_bias, attention_bias,
          "only one of queries, keys and values and of attention's output has biases");
  c.fixed(o.mlp.bias, true, "its feed-forward layers have no biases");
  c.fixed(o.norm.kind, NormKind::layer, "its norms are not layer norms");
  c.fixed(o.norm.one_plus_gain, false, "its norms multiply by 1 + gain");
  c.extras(o, {});
  c.fixed(o.residual.after_norm, false, "its residuals branch off after the norm");
  c.fixed(o.attention.num_groups, o.attention.num_heads, "heads share keys and values");
  c.require(o.hidden_size % o.attention.num_heads == 0,
            concat("num_attention_heads ", o.attention.num_heads, " does not divide hidden_size ",
                   o.hidden_size));
  c.fixed(o.attention.head_dim, o.hidden_size / o.attention.num_heads,
          "its heads together are not as wide as the model");
}

constexpr HuggingFace kNeox = {.model_type = "gpt_neox",
                               .architecture = "GPTNeoXForCausalLM",
                               .prefix = "gpt_neox.",
                               .output = "embed_out.weight",
                               .tensors = kTensors,
                               .ignored = kIgnored,
                               .config = config};

void defaults(ModelOptions& o) {
  o.residual.parallel = true;
  o.positions.rotary = true;
  o.positions.rotary_fraction = 0.25;
  o.mlp.kind = MlpKind::gelu_erf;
  o.vocabulary.untied = true;
}

}  // namespace

const Family& neox_family() {
  static constexpr Family kFamily = {.name = "neox",
                                     .summary = "GPT-NeoX, Pythia, open-calm",
                                     .defaults = defaults,
                                     .num_blocks = num_decoder_blocks,
                                     .blocks = decoder_blocks,
                                     .hugging_face = &kNeox,
                                     .megatron = {.tensors = kMegatronDecoder}};
  return kFamily;
}

}  // namespace bloomery
