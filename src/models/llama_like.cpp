#include "models/llama_like.h"

namespace bloomery {
namespace {

void sizes(HfConfig& c, ModelOptions& o, const LlamaLike& row) {
  c.size({"vocab_size"}, o.vocabulary.size, row.vocabulary);
  c.size({"hidden_size"}, o.hidden_size, row.hidden);
  c.size({"num_hidden_layers"}, o.num_layers, row.layers);
  c.size({"num_attention_heads"}, o.attention.num_heads, row.heads);
  c.size({"num_key_value_heads"}, o.attention.num_groups,
         row.groups > 0 ? row.groups : o.attention.num_heads);
  c.size({"head_dim"}, o.attention.head_dim,
         row.head_dim > 0 ? row.head_dim : o.hidden_size / o.attention.num_heads);
  c.size({"intermediate_size"}, o.mlp.ffn, row.ffn);
  c.size({"max_position_embeddings"}, o.positions.max_length, row.max_length);
}

void blocks(HfConfig& c, ModelOptions& o, const LlamaLike& row) {
  c.activation("hidden_act", o.mlp.kind, row.activation, true);
  c.number("rms_norm_eps", o.norm.epsilon, 1e-6, 0, 1);
  c.number("initializer_range", o.init.std, 0.02, 0, 1e6);
  c.number("attention_dropout", o.attention.dropout, 0, 0, 1);
  c.opposite("tie_word_embeddings", o.vocabulary.untied, row.tied);
  c.none("quantization_config", "quantized weights are not supported");
  c.fixed(o.positions.rotary, true, "its positions are not rotary");
  c.rotary(o.positions);
  c.fixed(o.positions.rotary_fraction, 1, "only a part of each head is rotated");
  c.fixed(o.positions.rotary_interleaved, false, "its rotated channels are interleaved");
  c.fixed(o.norm.kind, NormKind::rms, "its norms are not RMS norms");
  c.fixed(o.norm.one_plus_gain, row.one_plus_gain,
          row.one_plus_gain ? "its norms multiply by the gain alone"
                            : "its norms multiply by 1 + gain");
  c.extras(o,
           {.windows = row.windows == HfWindows::all_layers || row.windows == HfWindows::by_layer,
            .head_norms = row.head_norm,
            .scaled_embeddings = row.scaled_embeddings});
  c.require(o.mlp.gated(), "its feed-forward layers are not gated");
  c.fixed(o.residual.parallel, false, "attention and feed-forward layer stand side by side");
  c.fixed(o.residual.after_norm, false, "its residuals branch off after the norm");
  c.absent(o.residual.dropout, 0);
}

void experts(HfConfig& c, ModelOptions& o, const LlamaExperts& row) {
  MoeOptions& moe = o.moe;
  std::int64_t count = moe.num_experts.front();
  c.size({row.key}, count, row.count);
  c.fixed(moe.num_experts, {count}, "its layers have different numbers of experts");
  c.size({"num_experts_per_tok"}, moe.topk, row.topk);
  c.number("router_aux_loss_coef", moe.loss_coefficient, 0.001, 0, 1e6);
  c.fixed(moe.kind, MoeKind::standard, "its experts have an MLP beside them (mlp-type residual)");
  // What only training asks for.
  c.absent(moe.drop_tokens, false);
  c.absent(moe.sample_second, false);
  c.absent(moe.balance_all_choices, true);
  row.config(c, o);
}

// A key that says whether there are biases.
void bias_by_key(HfConfig& c, const char* key, std::optional<bool>& field, bool otherwise) {
  bool said = field.value_or(otherwise);
  c.flag(key, said, otherwise);
  c.fixed(field, said, "");
}

void biases(HfConfig& c, ModelOptions& o, const LlamaLike& row) {
  std::optional<bool>& qkv = o.attention.qkv_bias;
  std::optional<bool>& output = o.attention.output_bias;
  if (row.biases == AttentionBiases::by_attention_bias) {
    bias_by_key(c, "attention_bias", qkv, false);
    c.fixed(output, qkv,
            "only one of queries, keys and values and of attention's output has biases");
  } else {
    switch (row.biases) {
      case AttentionBiases::by_qkv_bias:
        bias_by_key(c, "qkv_bias", qkv, true);
        break;
      case AttentionBiases::queries_keys_values:
        c.fixed(qkv, true, "its queries, keys and values have no biases");
        break;
      default:
        c.fixed(qkv, false, "its queries, keys and values have biases");
    }
    c.fixed(output, false, "the output of its attention has a bias");
  }
  if (row.mlp_bias_key) {
    bias_by_key(c, "mlp_bias", o.mlp.bias, false);
  } else {
    c.fixed(o.mlp.bias, false, "its feed-forward layers have biases");
  }
}

void windows(HfConfig& c, ModelOptions& o, HfWindows how) {
  if (how == HfWindows::refused) {
    c.none("sliding_window", "sliding windows are not supported");
  } else if (how == HfWindows::all_layers) {
    c.window(o.attention);
    c.none("layer_types", "all its layers have the same window, others are of another model_type");
  } else if (how == HfWindows::by_layer) {
    c.window_by_layer(o.attention, o.num_layers);
  }
}

}  // namespace

void llama_config(HfConfig& c, ModelOptions& o, const LlamaLike& row) {
  sizes(c, o, row);
  blocks(c, o, row);
  if (row.experts != nullptr) {
    experts(c, o, *row.experts);
  }
  biases(c, o, row);
  windows(c, o, row.windows);
  if (row.further != nullptr) {
    row.further(c, o);
  }
  c.tokens(o.vocabulary.size, row.tokens);
}

void llama_defaults(ModelOptions& o, const LlamaLike& row) {
  o.bias = false;
  if (row.biases == AttentionBiases::queries_keys_values ||
      row.biases == AttentionBiases::by_qkv_bias) {
    o.attention.qkv_bias = true;
  }
  o.attention.head_norm = row.head_norm;
  o.attention.window = row.window;
  o.mlp.kind = row.gates;
  o.norm = {.kind = NormKind::rms, .epsilon = row.epsilon, .one_plus_gain = row.one_plus_gain};
  o.positions.rotary = true;
  o.positions.rotary_base = row.rotary_base;
  o.vocabulary.untied = !row.tied;
  o.vocabulary.scaled = row.scaled_embeddings;
  if (row.experts == nullptr) {
    return;
  }
  o.moe.num_experts = {row.experts->count};
  o.moe.topk = row.experts->topk;
  o.moe.ffn = row.experts->ffn;
  o.moe.shared_ffn = row.experts->shared_ffn;
  o.moe.renormalise = row.experts->renormalise;
  o.moe.interval = 1;
  o.moe.drop_tokens = o.moe.sample_second = false;
  o.moe.balance_all_choices = true;
  o.moe.loss_coefficient = 0.001;
}

}  // namespace bloomery
