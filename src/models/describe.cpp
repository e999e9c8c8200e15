// The options that all models share, each declared once: flags, help, JSON and the record of
// checkpoints come from these rows.
#include "config/option_table.h"
#include "models/family.h"
#include "ops/moe/router_rule.h"

namespace bloomery {
namespace {

void describe_size(OptionTable& t, ModelOptions& o) {
  t.section("network size");
  t.add("num-layers", o.num_layers, "Transformer layers.", between(1, 1e6))
      .alias("encoder-num-layers");
  t.add("hidden-size", o.hidden_size, "Width of the model.", between(1, 1e7));
  t.add("num-attention-heads", o.attention.num_heads, "Query heads.", between(1, 1e6));
  t.add("num-key-value-heads", o.attention.num_groups, "Key and value heads; 0: as queries.",
        between(0, 1e6))
      .alias("num-query-groups");
  t.add("kv-channels", o.attention.head_dim, "Width of a head; 0: hidden size / heads.",
        between(0, 1e6));
  t.add("ffn-hidden-size", o.mlp.ffn,
        "Width of the MLP; 0: 4 x hidden size, of a gated one 8/3 of it in multiples of 64.",
        between(0, 1e8));
  t.add("max-position-embeddings", o.positions.max_length,
        "Rows of the table of positions; 0: the sequence length.", between(0, 1e9));
  t.add("make-vocab-size-divisible-by", o.vocabulary.divisible_by,
        "The vocabulary is padded to a multiple of this.", between(1, 1e6));
}

void describe_positions(OptionTable& t, PositionOptions& o) {
  t.section("positions");
  t.add("use-rotary-position-embeddings", o.rotary, "Rotary positions instead of learned ones.");
  t.add("rotary-position-embeddings-theta", o.rotary_base, "Base of the rotary angles.", above(0))
      .alias("rotary-base");
  t.add("rotary-percent", o.rotary_fraction, "Share of a head that is rotated.", between(0, 1));
  t.add("rotary-interleaved", o.rotary_interleaved,
        "Neighbouring channels turn together, not those of the two halves of a head.");
  t.add("position-embedding", o.learned, "A table of learned positions, unless they are rotary.")
      .alias("add-position-embedding");
  RotaryScaling& s = o.scaling;
  using Kind = RotaryScaling::Kind;
  t.add("rope-scaling", s.kind, "How rotary angles are stretched for long sequences.",
        {{"none", Kind::none},
         {"linear", Kind::linear},
         {"dynamic", Kind::dynamic},
         {"llama3", Kind::llama3},
         {"yarn", Kind::yarn}});
  t.add("rope-scaling-factor", s.factor, "By how much.", above(0));
  t.add("rope-original-length", s.original_length,
        "Positions of the model before it was stretched (dynamic, llama3, yarn).", at_least(0));
  t.add("rope-low-frequency-factor", s.low_frequency_factor, "Of llama3.", at_least(0));
  t.add("rope-high-frequency-factor", s.high_frequency_factor, "Of llama3.", at_least(0));
  t.add("rope-beta-fast", s.beta_fast, "Of yarn.", at_least(0));
  t.add("rope-beta-slow", s.beta_slow, "Of yarn.", at_least(0));
  t.add("rope-attention-factor", s.attention_factor, "Of yarn; 0: by its rule.", at_least(0));
  t.add("rope-mscale", s.mscale, "Of yarn's rule; 0: not given.", at_least(0));
  t.add("rope-mscale-all-dim", s.mscale_all_dim, "Of yarn's rule; 0: not given.", at_least(0));
  t.add("rope-truncate", s.truncate, "Yarn's bounds are whole numbers.");
}

void describe_layers(OptionTable& t, ModelOptions& o) {
  t.section("network");
  t.add("normalization", o.norm.kind, "Kind of norm.",
        {{"layernorm", NormKind::layer},
         {"rmsnorm", NormKind::rms},
         {"LayerNorm", NormKind::layer},
         {"RMSNorm", NormKind::rms}});
  t.add("layernorm-epsilon", o.norm.epsilon, "Added to the variance in norms.", at_least(0))
      .alias("norm-epsilon");
  t.add("apply-layernorm-1p", o.norm.one_plus_gain, "Norms multiply by 1 + gain.");
  t.add("activation", o.mlp.kind,
        "Of the MLP. auto is Megatron's: GELU by its tanh formula, and without biases or their "
        "fusion by the error function. swiglu, geglu and reglu are gated.",
        {{"auto", MlpKind::automatic},
         {"gelu-tanh", MlpKind::gelu_tanh},
         {"gelu", MlpKind::gelu_erf},
         {"silu", MlpKind::silu},
         {"relu", MlpKind::relu},
         {"squared-relu", MlpKind::squared_relu},
         {"swiglu", MlpKind::swiglu},
         {"geglu-tanh", MlpKind::geglu_tanh},
         {"geglu", MlpKind::geglu_erf},
         {"reglu", MlpKind::reglu}})
      .shorthand("openai-gelu", "gelu-tanh")
      .shorthand("squared-relu", "squared-relu")
      .shorthand("swiglu", "swiglu");
  t.add("bias-gelu-fusion", o.mlp.bias_gelu_fusion,
        "Without it GELU is by the error function, which is what Megatron then computes.");
  t.add("add-bias-linear", o.bias, "Biases in linear layers.")
      .shorthand("disable-bias-linear", "false");
  t.add("add-qkv-bias", o.attention.qkv_bias,
        "Biases of queries, keys and values; none: as other linear layers.");
  t.add("add-attention-output-bias", o.attention.output_bias,
        "Bias of attention's output; none: as other linear layers.");
  t.add("add-mlp-bias", o.mlp.bias, "Biases of the MLP; none: as other linear layers.");
  t.add("qk-layernorm", o.attention.head_norm, "RMS norm of each query and key head.");
  t.add("sliding-window", o.attention.window,
        "Keys that a query sees, its own and those before it; 0: all.", between(0, 2147483647));
  t.add("window-attn-skip-freq", o.attention.window_layers,
        "Layers with the window: a 1 or 0 for each layer, or one number N: all but every N-th.",
        between(0, 1e6));
  t.add("use-parallel-residual", o.residual.parallel,
        "Attention and MLP read the same stream and are added to it together.");
  t.add("apply-residual-connection-post-layernorm", o.residual.after_norm,
        "The residual branches off after the norm.");
  t.add("fp32-residual-connection", o.residual.fp32, "Residual stream in fp32.");
  t.add("untie-embeddings-and-output-weights", o.vocabulary.untied,
        "An output matrix of its own instead of the word embeddings.");
  t.add("scale-embeddings", o.vocabulary.scaled,
        "Embeddings are multiplied by the square root of the hidden size.");
  t.add("padded-vocab-in-softmax", o.vocabulary.padded_in_softmax,
        "Padded columns take part in the softmax, as Megatron computes.");
}

void describe_experts(OptionTable& t, MoeOptions& o) {
  t.section("mixture of experts");
  t.add("num-experts", o.num_experts,
        "Experts of the layers that have them: one number, or one for each of these layers; 1: "
        "none.",
        between(1, 1e5));
  t.add("expert-interval", o.interval, "Every how many layers one has experts.", between(1, 1e6));
  t.add("dense-layers", o.dense_layers, "Layers, from 0, that have none all the same.",
        between(0, 1e6));
  t.add("moe-ffn-hidden-size", o.ffn, "Width of an expert; 0: that of the MLP.", between(0, 1e8));
  t.add("moe-shared-expert-intermediate-size", o.shared_ffn,
        "Width of an expert that all tokens go to, behind a gate; 0: there is none.",
        between(0, 1e8));
  t.add("mlp-type", o.kind, "Of layers with experts; residual: an MLP beside them (PR-MoE).",
        {{"standard", MoeKind::standard}, {"residual", MoeKind::residual}});
  t.add("topk", o.topk, "Experts that a token goes to.", between(1, kMostChoices))
      .alias("moe-router-topk");
  t.add("moe-normalize-gates", o.renormalise,
        "The gates of a token sum to one; none: with a topk above 1, as DeepSpeed.");
  t.add("moe-balance-all-choices", o.balance_all_choices,
        "The balance loss counts all choices, not first ones; none: with a topk above 2, as "
        "DeepSpeed.");
  t.add("moe-token-dropping", o.drop_tokens,
        "An expert takes tokens up to its capacity and drops the others.")
      .shorthand("disable-moe-token-dropping", "false");
  t.add("moe-train-capacity-factor", o.train_capacity,
        "Capacity of an expert in training, beside an equal share of the tokens.", above(0));
  t.add("moe-eval-capacity-factor", o.eval_capacity, "The same in evaluation.", above(0));
  t.add("moe-min-capacity", o.min_capacity, "The least capacity of an expert.", at_least(0));
  t.add("moe-random-token-selection", o.random_selection,
        "With a topk of 1: whom a full expert serves is drawn, not a matter of order.");
  t.add("moe-top2-2nd-expert-sampling", o.sample_second,
        "With a topk of 2: the second expert is drawn, not the best of the rest.")
      .shorthand("disable-moe-top2-2nd-expert-sampling", "false");
  t.add("moe-input-jitter-eps", o.jitter,
        "In training routers see their input times 1 plus or minus up to this.",
        from_to_below(0, 1));
  t.add("moe-loss-coeff", o.loss_coefficient, "Of the balance loss.", at_least(0))
      .alias("moe-aux-loss-coeff");
  t.add("moe-z-loss-coeff", o.z_coefficient, "Of the mean squared logsumexp of routers.",
        at_least(0));
}

void describe_adapter(OptionTable& t, AdapterOptions& o) {
  t.section("low-rank adapters");
  t.add("lora", o.enabled,
        "LoRA: the weights stay as they are, and low-rank products beside linear layers learn.");
  t.add("lora-rank", o.rank, "Of the products.", between(1, 1e5)).alias("lora-r");
  t.add("lora-alpha", o.alpha, "The products are multiplied by this / rank.", above(0));
  t.add("use-rslora", o.by_root, "By alpha / the square root of the rank instead.");
  t.add("lora-dropout", o.dropout, "Of what goes into the products.", from_to_below(0, 1));
  t.add("lora-target-modules", o.targets,
        "Layers that have them, by Hugging Face's names (q_proj, c_attn) or ours (attention.qkv, "
        "mlp.down), or all-linear; none: queries and values.")
      .alias("lora-targets");
}

void describe_randomness(OptionTable& t, ModelOptions& o) {
  t.section("initialization and dropout");
  t.add("init-method-std", o.init.std, "Standard deviation of initial weights.", at_least(0));
  t.add("init-method-xavier-uniform", o.init.xavier, "Initial weights by Xavier's uniform rule.");
  t.add("attention-dropout", o.attention.dropout, "Of attention probabilities.",
        from_to_below(0, 1));
  t.add("hidden-dropout", o.residual.dropout, "Of hidden states and embeddings.",
        from_to_below(0, 1));
  t.add("neftune-noise-alpha", o.vocabulary.noise_alpha,
        "NEFTune: in training embeddings get uniform noise of up to this / sqrt(length x width); "
        "0: none.",
        at_least(0));
}

}  // namespace

void describe_model(OptionTable& table, ModelOptions& options) {
  describe_size(table, options);
  describe_layers(table, options);
  describe_experts(table, options.moe);
  describe_positions(table, options.positions);
  describe_randomness(table, options);
  describe_adapter(table, options.adapter);
  if (const auto describe = find_family(options.family).describe) {
    describe(table, options);
  }
}

}  // namespace bloomery
