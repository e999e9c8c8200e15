#include "config/option_table.h"
#include "train/options/pretrain_options.h"

namespace bloomery {
namespace {

void describe_size(OptionTable& t, NetworkOptions& o) {
  t.section("network size");
  t.add("model-size", o.model_size,
        "Layers, width and heads by name: 124M, 1.7B, GPT13B, ... (also MODEL_SIZE_KEY in the "
        "environment). Flags that are given count more.");
  t.add("num-layers", o.num_layers, "Transformer layers.", between(1, 1e6))
      .alias("encoder-num-layers");
  t.add("hidden-size", o.hidden_size, "Width of the model.", between(1, 1e7));
  t.add("num-attention-heads", o.num_attention_heads, "Query heads.", between(1, 1e6));
  t.add("num-key-value-heads", o.num_key_value_heads, "Key and value heads; none: as queries.",
        between(1, 1e6))
      .alias("num-query-groups");
  t.add("kv-channels", o.kv_channels, "Width of a head; none: hidden size / heads.",
        between(1, 1e6));
  t.add("ffn-hidden-size", o.ffn_hidden_size,
        "Width of the MLP; none: 4 x hidden size, with --swiglu 8/3 of it in multiples of 64.",
        between(1, 1e8));
  t.add("max-position-embeddings", o.max_position_embeddings,
        "Rows of the table of positions; none: the sequence length.", between(1, 1e9));
  t.add("make-vocab-size-divisible-by", o.make_vocab_size_divisible_by,
        "The vocabulary is padded to a multiple of this.", between(1, 1e6));
}

void describe_shape(OptionTable& t, NetworkOptions& o) {
  t.section("network");
  t.add("use-rotary-position-embeddings", o.rotary, "Rotary positions instead of learned ones.");
  t.add("rotary-position-embeddings-theta", o.rotary_theta, "Base of the rotary angles.", above(0))
      .alias("rotary-base");
  t.add("rotary-percent", o.rotary_percent, "Share of a head that is rotated.", between(0, 1));
  t.add("no-position-embedding", o.no_position_embedding, "No learned positions.");
  t.add("layernorm-epsilon", o.norm_epsilon, "Added to the variance in norms.", above(0))
      .alias("norm-epsilon");
  t.add("apply-layernorm-1p", o.layernorm_1p, "Norms multiply by 1 + gain.");
  t.add("apply-residual-connection-post-layernorm", o.post_norm_residual,
        "The residual branches off after the norm.");
  t.add("openai-gelu", o.openai_gelu, "GELU by its tanh formula, which is the default anyway.");
  t.add("squared-relu", o.squared_relu, "Squared ReLU instead of GELU.");
  t.add("swiglu", o.swiglu, "Gated SiLU instead of GELU.");
  t.add("no-bias-gelu-fusion", o.no_bias_gelu_fusion,
        "GELU by the error function, which is what Megatron computes without its fused kernel.");
  t.add("add-bias-linear", o.bias, "Biases in linear layers.")
      .shorthand("disable-bias-linear", "false");
  t.add("untie-embeddings-and-output-weights", o.untied,
        "An output matrix of its own instead of the word embeddings.");
  t.add("padded-vocab-in-softmax", o.padded_vocab_in_softmax,
        "Padded columns take part in the softmax, as Megatron computes.");
}

}  // namespace

void describe_model(OptionTable& t, PretrainOptions& options) {
  NetworkOptions& o = options.network;
  describe_size(t, o);
  describe_shape(t, o);
  t.add("normalization", o.norm, "Kind of norm.",
        {{"layernorm", NormKind::layer}, {"rmsnorm", NormKind::rms}});
  t.section("initialization and dropout");
  t.add("seed", options.seed, "Of initial values, dropout and the order of the data.",
        between(0, 9e15));
  t.add("init-method-std", o.init_std, "Standard deviation of initial weights.", at_least(0));
  t.add("init-method-xavier-uniform", o.xavier, "Initial weights by Xavier's uniform rule.");
  t.add("attention-dropout", o.attention_dropout, "Of attention probabilities.",
        from_to_below(0, 1));
  t.add("hidden-dropout", o.hidden_dropout, "Of hidden states and embeddings.",
        from_to_below(0, 1));
}

}  // namespace bloomery
