#include "nn/model_options.h"

#include <cmath>

namespace bloomery {
namespace {

MlpKind automatic_kind(const ModelOptions& o) {
  const bool fused = o.mlp.bias_gelu_fusion && o.mlp.bias.value_or(o.bias);
  return fused ? MlpKind::gelu_tanh : MlpKind::gelu_erf;
}

void set_default(std::int64_t& field, std::int64_t value) { field = field > 0 ? field : value; }

}  // namespace

Activation MlpOptions::activation() const {
  switch (kind) {
    case MlpKind::automatic:
    case MlpKind::gelu_tanh:
    case MlpKind::geglu_tanh:
      return Activation::gelu_tanh;
    case MlpKind::gelu_erf:
    case MlpKind::geglu_erf:
      return Activation::gelu_erf;
    case MlpKind::silu:
    case MlpKind::swiglu:
      return Activation::silu;
    case MlpKind::relu:
    case MlpKind::reglu:
      return Activation::relu;
    case MlpKind::squared_relu:
      return Activation::squared_relu;
  }
  return Activation::none;
}

ModelOptions completed(ModelOptions o) {
  if (o.mlp.kind == MlpKind::automatic) {
    o.mlp.kind = automatic_kind(o);
  }
  SelfAttentionOptions& a = o.attention;
  set_default(a.num_groups, a.num_heads);
  set_default(a.head_dim, a.num_heads > 0 ? o.hidden_size / a.num_heads : 0);
  set_default(o.mlp.ffn, o.mlp.gated() ? o.hidden_size * 8 / 3 / 64 * 64 : 4 * o.hidden_size);
  o.positions.learned = o.positions.has_table();
  a.qkv_bias = a.qkv_bias.value_or(o.bias);
  a.output_bias = a.output_bias.value_or(o.bias);
  o.mlp.bias = o.mlp.bias.value_or(o.bias);
  return o;
}

Init weight_init(const ModelOptions& o, std::int64_t fan_in, std::int64_t fan_out,
                 bool ends_branch) {
  if (o.init.xavier) {
    return {Init::Kind::uniform, std::sqrt(6.0 / static_cast<double>(fan_in + fan_out))};
  }
  const double shrink = ends_branch ? std::sqrt(2.0 * static_cast<double>(o.num_layers)) : 1.0;
  return {Init::Kind::normal, o.init.std / shrink};
}

}  // namespace bloomery
