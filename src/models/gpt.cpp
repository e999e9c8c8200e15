// GPT as Megatron trains it: every common option is open. Its Hugging Face form is GPT-2.
#include "models/decoder.h"
#include "models/family.h"
#include "models/megatron.h"

namespace bloomery {
namespace {

// transformers' Conv1D keeps weights as [in, out], and its fused QKV has all queries first; ours
// are [out, in], with query, key and value of a head together.
constexpr TensorRule kTensors[] = {
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
    {"head.weight", "lm_head.weight", "v e -> v e"},
};

// Buffers with the causal mask, which older versions stored among the weights.
constexpr std::string_view kIgnored[] = {".attn.bias", ".attn.masked_bias"};

void config(HfConfig& c, ModelOptions& o) {
  c.size({"vocab_size"}, o.vocabulary.size, 50257);
  c.size({"n_positions", "max_position_embeddings"}, o.positions.max_length, 1024);
  c.size({"n_embd", "hidden_size"}, o.hidden_size, 768);
  c.size({"n_layer", "num_hidden_layers"}, o.num_layers, 12);
  c.size({"n_head", "num_attention_heads"}, o.attention.num_heads, 12);
  c.size({"n_inner"}, o.mlp.ffn, 4 * o.hidden_size);
  c.activation("activation_function", o.mlp.kind, "gelu_new", false);
  c.number("layer_norm_epsilon", o.norm.epsilon, 1e-5, 0, 1);
  c.number("initializer_range", o.init.std, 0.02, 0, 1e6);
  c.number("resid_pdrop", o.residual.dropout, 0.1, 0, 1);
  float embedding_dropout = o.residual.dropout;  // one of ours for both
  c.number("embd_pdrop", embedding_dropout, 0.1, 0, 1);
  c.number("attn_pdrop", o.attention.dropout, 0.1, 0, 1);
  c.opposite("tie_word_embeddings", o.vocabulary.untied, true);
  c.tokens(o.vocabulary.size, {.bos = 50256, .eos = 50256});
  // reorder_and_upcast_attn changes nothing: attention scores are fp32 here in any case.
  c.only("scale_attn_weights", true,
         "scores without the factor 1/sqrt(head size) are not supported");
  c.only("scale_attn_by_inverse_layer_idx", false,
         "scores divided by the number of the layer are not supported");
  c.only("add_cross_attention", false, "attention to an encoder is not supported");
  c.none("quantization_config", "quantized weights are not supported");
  c.none("pruned_heads", "removed heads are not supported");
  c.fixed(o.positions.rotary, false, "its positions are not learned");
  c.fixed(o.positions.learned, true, "it has no table of positions");
  c.fixed(o.norm.kind, NormKind::layer, "its norms are not layer norms");
  c.fixed(o.norm.one_plus_gain, false, "its norms multiply by 1 + gain");
  c.extras(o, {});
  c.fixed(o.attention.qkv_bias, true, "its queries, keys and values have no biases");
  c.fixed(o.attention.output_bias, true, "the output of its attention has no bias");
  c.fixed(o.mlp.bias, true, "its feed-forward layers have no biases");
  c.fixed(o.residual.parallel, false, "attention and feed-forward layer stand side by side");
  c.fixed(o.residual.after_norm, false, "its residuals branch off after the norm");
  c.fixed(o.attention.num_groups, o.attention.num_heads, "heads share keys and values");
  c.require(o.hidden_size % o.attention.num_heads == 0,
            concat("n_head ", o.attention.num_heads, " does not divide n_embd ", o.hidden_size));
  c.fixed(o.attention.head_dim, o.hidden_size / o.attention.num_heads,
          "its heads together are not as wide as the model");
}

void defaults(ModelOptions& o) { o.attention.dropout = o.residual.dropout = 0.1f; }

constexpr HuggingFace kGpt2 = {.model_type = "gpt2",
                               .architecture = "GPT2LMHeadModel",
                               .prefix = "transformer.",
                               .output = "lm_head.weight",
                               .tensors = kTensors,
                               .ignored = kIgnored,
                               .config = config};

}  // namespace

const Family& gpt_family() {
  static constexpr Family kFamily = {.name = "gpt",
                                     .summary = "GPT-2, GPT-3 and all decoders of Megatron's flags",
                                     .defaults = defaults,
                                     .num_blocks = num_decoder_blocks,
                                     .blocks = decoder_blocks,
                                     .hugging_face = &kGpt2,
                                     .megatron = {.tensors = kMegatronDecoder}};
  return kFamily;
}

}  // namespace bloomery
