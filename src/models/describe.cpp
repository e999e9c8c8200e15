// The options that all models share, each declared once: flags, help, JSON and the record of
// checkpoints come from these rows.
#include "config/option_table.h"
#include "models/family.h"
#include "ops/moe/router_rule.h"

namespace bloomery {
namespace {

void describe_size(OptionTable& t, ModelOptions& o) {
  t.section("network size");
  t.add("num-layers", o.num_layers, "Number of transformer layers.", between(1, 1e6))
      .alias("encoder-num-layers");
  t.add("hidden-size", o.hidden_size, "Hidden size of the model.", between(1, 1e7));
  t.add("num-attention-heads", o.attention.num_heads, "Number of attention (query) heads.",
        between(1, 1e6));
  t.add("num-key-value-heads", o.attention.num_groups,
        "Number of key/value heads (grouped-query attention); 0: as many as query heads.",
        between(0, 1e6))
      .alias("num-query-groups");
  t.add("kv-channels", o.attention.head_dim,
        "Size of an attention head; 0: hidden size / attention heads.", between(0, 1e6));
  t.add("ffn-hidden-size", o.mlp.ffn,
        "Hidden size of the MLP; 0: 4 x hidden size, with a gated activation 8/3 of it, rounded up "
        "to a multiple of 64.",
        between(0, 1e8));
  t.add("max-position-embeddings", o.positions.max_length,
        "Rows of the learned position table; 0: the sequence length.", between(0, 1e9));
  t.add("make-vocab-size-divisible-by", o.vocabulary.divisible_by,
        "Pad the vocabulary to a multiple of this number.", between(1, 1e6));
}

void describe_positions(OptionTable& t, PositionOptions& o) {
  t.section("positions");
  t.add("use-rotary-position-embeddings", o.rotary,
        "Use rotary position embeddings (RoPE) instead of a learned position table.");
  t.add("rotary-position-embeddings-theta", o.rotary_base,
        "Base of the rotary angles (RoPE theta).", above(0))
      .alias("rotary-base");
  t.add("rotary-percent", o.rotary_fraction, "Fraction of each head that RoPE rotates.",
        between(0, 1));
  t.add("rotary-interleaved", o.rotary_interleaved,
        "Rotate neighbouring channels as pairs instead of the two halves of a head.");
  t.add("position-embedding", o.learned,
        "Add learned position embeddings, unless positions are rotary.")
      .off("Leave out the learned position table.")
      .alias("add-position-embedding");
  RotaryScaling& s = o.scaling;
  using Kind = RotaryScaling::Kind;
  t.add("rope-scaling", s.kind, "Method that extends RoPE to longer sequences.",
        {{"none", Kind::none},
         {"linear", Kind::linear},
         {"dynamic", Kind::dynamic},
         {"llama3", Kind::llama3},
         {"yarn", Kind::yarn}});
  t.add("rope-scaling-factor", s.factor, "Scaling factor of --rope-scaling.", above(0));
  t.add("rope-original-length", s.original_length,
        "Context length of the model before RoPE scaling (dynamic, llama3, yarn).", at_least(0));
  t.add("rope-low-frequency-factor", s.low_frequency_factor,
        "Low-frequency factor of llama3 scaling.", at_least(0));
  t.add("rope-high-frequency-factor", s.high_frequency_factor,
        "High-frequency factor of llama3 scaling.", at_least(0));
  t.add("rope-beta-fast", s.beta_fast, "beta_fast of yarn scaling.", at_least(0));
  t.add("rope-beta-slow", s.beta_slow, "beta_slow of yarn scaling.", at_least(0));
  t.add("rope-attention-factor", s.attention_factor,
        "Attention factor of yarn scaling; 0: computed by yarn's rule.", at_least(0));
  t.add("rope-mscale", s.mscale, "mscale of yarn scaling; 0: not given.", at_least(0));
  t.add("rope-mscale-all-dim", s.mscale_all_dim, "mscale_all_dim of yarn scaling; 0: not given.",
        at_least(0));
  t.add("rope-truncate", s.truncate, "Round the bounds of yarn scaling to whole numbers.")
      .off("Keep the bounds of yarn scaling as fractions.");
}

void describe_layers(OptionTable& t, ModelOptions& o) {
  t.section("network");
  t.add("normalization", o.norm.kind, "Normalization layer.",
        {{"layernorm", NormKind::layer},
         {"rmsnorm", NormKind::rms},
         {"LayerNorm", NormKind::layer},
         {"RMSNorm", NormKind::rms}});
  t.add("layernorm-epsilon", o.norm.epsilon, "Epsilon of the normalization layers.", at_least(0))
      .alias("norm-epsilon");
  t.add("apply-layernorm-1p", o.norm.one_plus_gain,
        "Multiply by 1 + gain in normalization layers.");
  t.add("activation", o.mlp.kind,
        "Activation of the MLP. auto follows Megatron: tanh GELU, and erf GELU with "
        "--disable-bias-linear or --no-bias-gelu-fusion. swiglu, geglu and reglu are gated.",
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
        "Compute tanh GELU, as Megatron's fused kernel does.")
      .off("Compute GELU with erf, as Megatron does without the fused kernel.");
  t.add("add-bias-linear", o.bias, "Add biases to linear layers.")
      .off("Leave out the biases of linear layers.")
      .shorthand("disable-bias-linear", "false");
  t.add("add-qkv-bias", o.attention.qkv_bias,
        "Add biases to queries, keys and values; none: as the other linear layers.");
  t.add("add-attention-output-bias", o.attention.output_bias,
        "Add a bias to the attention output; none: as the other linear layers.");
  t.add("add-mlp-bias", o.mlp.bias, "Add biases to the MLP; none: as the other linear layers.");
  t.add("qk-layernorm", o.attention.head_norm, "Apply RMSNorm to each query and key head.");
  t.add("sliding-window", o.attention.window,
        "Size of the sliding attention window, the query's own position included; 0: no window.",
        between(0, 2147483647));
  t.add("window-attn-skip-freq", o.attention.window_layers,
        "Layers with sliding-window attention: one 1 or 0 per layer, or one number N for all "
        "layers except every N-th.",
        between(0, 1e6));
  t.add("use-parallel-residual", o.residual.parallel,
        "Compute attention and MLP in parallel from the same input, as GPT-NeoX does.");
  t.add("apply-residual-connection-post-layernorm", o.residual.after_norm,
        "Branch the residual connection off after the normalization.");
  t.add("fp32-residual-connection", o.residual.fp32, "Keep the residual stream in fp32.");
}

void describe_vocabulary(OptionTable& t, ModelOptions& o) {
  t.add("untie-embeddings-and-output-weights", o.vocabulary.untied,
        "Use an output matrix of its own instead of the word embeddings.");
  t.add("scale-embeddings", o.vocabulary.scaled,
        "Multiply embeddings by the square root of the hidden size.");
  t.add("padded-vocab-in-softmax", o.vocabulary.padded_in_softmax,
        "Include the padded vocabulary columns in the softmax, as Megatron does.")
      .off("Leave the padded vocabulary columns out of the softmax.");
}

void describe_experts(OptionTable& t, MoeOptions& o) {
  t.section("mixture of experts");
  t.add("num-experts", o.num_experts,
        "Number of experts per MoE layer: one number, or one per MoE layer; 1: no experts.",
        between(1, 1e5));
  t.add("expert-interval", o.interval, "Make every N-th layer an MoE layer.", between(1, 1e6));
  t.add("dense-layers", o.dense_layers, "Layers, counted from 0, that stay dense.",
        between(0, 1e6));
  t.add("moe-ffn-hidden-size", o.ffn, "Hidden size of an expert; 0: that of the MLP.",
        between(0, 1e8));
  t.add("moe-shared-expert-intermediate-size", o.shared_ffn,
        "Hidden size of the gated shared expert; 0: no shared expert.", between(0, 1e8));
  t.add("mlp-type", o.kind,
        "Type of the MoE layers; residual adds a dense MLP beside the experts (PR-MoE).",
        {{"standard", MoeKind::standard}, {"residual", MoeKind::residual}});
  t.add("topk", o.topk, "Number of experts per token.", between(1, kMostChoices))
      .alias("moe-router-topk");
  t.add("moe-normalize-gates", o.renormalise,
        "Normalize the gates of a token to sum to one; none: as DeepSpeed, for top-k above 1.");
  t.add("moe-balance-all-choices", o.balance_all_choices,
        "Count all choices in the balance loss, not only the first; none: as DeepSpeed, for top-k "
        "above 2.");
  t.add("moe-token-dropping", o.drop_tokens, "Drop tokens above the capacity of an expert.")
      .off("Keep all tokens: experts have no capacity limit.")
      .shorthand("disable-moe-token-dropping", "false");
  t.add("moe-train-capacity-factor", o.train_capacity,
        "Capacity of an expert in training, as a factor of an equal share of the tokens.",
        above(0));
  t.add("moe-eval-capacity-factor", o.eval_capacity, "Capacity factor of an expert in evaluation.",
        above(0));
  t.add("moe-min-capacity", o.min_capacity, "Minimum capacity of an expert, in tokens.",
        at_least(0));
  t.add("moe-random-token-selection", o.random_selection,
        "With top-1 routing: choose the tokens of a full expert at random.")
      .off("With top-1 routing: choose the tokens of a full expert by their order.");
  t.add("moe-top2-2nd-expert-sampling", o.sample_second,
        "With top-2 routing: sample the second expert.")
      .off("With top-2 routing: take the second-best expert instead of sampling it.")
      .shorthand("disable-moe-top2-2nd-expert-sampling", "false");
  t.add("moe-input-jitter-eps", o.jitter,
        "In training, multiply the router's input by random factors between 1 - eps and 1 + eps.",
        from_to_below(0, 1));
  t.add("moe-loss-coeff", o.loss_coefficient, "Coefficient of the load-balancing loss.",
        at_least(0))
      .alias("moe-aux-loss-coeff");
  t.add("moe-z-loss-coeff", o.z_coefficient,
        "Coefficient of the router z-loss (mean squared logsumexp).", at_least(0));
}

void describe_adapter(OptionTable& t, AdapterOptions& o) {
  t.section("low-rank adapters");
  t.add("lora", o.enabled, "Train low-rank adapters (LoRA); the base weights are frozen.");
  t.add("lora-rank", o.rank, "Rank of the adapters.", between(1, 1e5)).alias("lora-r");
  t.add("lora-alpha", o.alpha, "Scaling of the adapters: alpha / rank.", above(0));
  t.add("use-rslora", o.by_root, "Scale the adapters by alpha / sqrt(rank) (rsLoRA).");
  t.add("lora-dropout", o.dropout, "Dropout of the adapters' input.", from_to_below(0, 1));
  t.add("lora-target-modules", o.targets,
        "Linear layers with an adapter, by Hugging Face's names (q_proj, c_attn) or Bloomery's "
        "(attention.qkv, mlp.down), or all-linear; none: queries and values.")
      .alias("lora-targets");
}

void describe_randomness(OptionTable& t, ModelOptions& o) {
  t.section("initialization and dropout");
  t.add("init-method-std", o.init.std, "Standard deviation of the initial weights.", at_least(0));
  t.add("init-method-xavier-uniform", o.init.xavier, "Use Xavier-uniform initial weights.");
  t.add("attention-dropout", o.attention.dropout, "Dropout of attention probabilities.",
        from_to_below(0, 1));
  t.add("hidden-dropout", o.residual.dropout, "Dropout of hidden states and embeddings.",
        from_to_below(0, 1));
  t.add("neftune-noise-alpha", o.vocabulary.noise_alpha,
        "NEFTune: in training, add uniform noise of up to alpha / sqrt(length x hidden size) to "
        "the embeddings; 0: no noise.",
        at_least(0));
}

}  // namespace

void describe_model(OptionTable& table, ModelOptions& options) {
  describe_size(table, options);
  describe_layers(table, options);
  describe_vocabulary(table, options);
  describe_experts(table, options.moe);
  describe_positions(table, options.positions);
  describe_randomness(table, options);
  describe_adapter(table, options.adapter);
  if (const auto describe = find_family(options.family).describe) {
    describe(table, options);
  }
}

}  // namespace bloomery
