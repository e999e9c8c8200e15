#include "nn/model_options.h"

#include <algorithm>
#include <cmath>

namespace bloomery {
namespace {

MlpKind automatic_kind(const ModelOptions& o) {
  const bool fused = o.mlp.bias_gelu_fusion && o.mlp.bias.value_or(o.bias);
  return fused ? MlpKind::gelu_tanh : MlpKind::gelu_erf;
}

// A list for all layers, or nothing where all have the same.
void complete_windows(SelfAttentionOptions& a, std::int64_t num_layers) {
  std::vector<std::int64_t>& slides = a.window_layers;
  if (slides.size() == 1 && slides[0] > 1) {
    const std::int64_t every = slides[0];
    slides.assign(static_cast<std::size_t>(num_layers), 1);
    for (std::int64_t layer = every - 1; layer < num_layers; layer += every) {
      slides[static_cast<std::size_t>(layer)] = 0;
    }
  }
  if (std::ranges::all_of(slides, [](std::int64_t slide) { return slide == 0; }) &&
      !slides.empty()) {
    a.window = 0;
  }
  if (a.window == 0 || std::ranges::count(slides, 1) == std::ssize(slides)) {
    slides.clear();
  }
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
  // Megatron's head has GELU by the error function, unless GELU was asked for by its tanh formula.
  if (o.head_activation == MlpKind::automatic) {
    o.head_activation = o.mlp.kind == MlpKind::gelu_tanh ? MlpKind::gelu_tanh : MlpKind::gelu_erf;
  }
  if (o.mlp.kind == MlpKind::automatic) {
    o.mlp.kind = automatic_kind(o);
  }
  SelfAttentionOptions& a = o.attention;
  set_default(a.num_groups, a.num_heads);
  set_default(a.head_dim, a.num_heads > 0 && o.hidden_size % a.num_heads == 0
                              ? o.hidden_size / a.num_heads
                              : 0);  // problems() says so
  set_default(o.mlp.ffn, o.mlp.gated() ? o.hidden_size * 8 / 3 / 64 * 64 : 4 * o.hidden_size);
  complete_windows(a, o.num_layers);
  o.positions.learned = o.positions.has_table();
  a.qkv_bias = a.qkv_bias.value_or(o.bias);
  a.output_bias = a.output_bias.value_or(o.bias);
  o.mlp.bias = o.mlp.bias.value_or(o.bias);
  set_default(o.moe.ffn, o.mlp.ffn);
  o.moe.renormalise = o.moe.renormalise.value_or(o.moe.topk > 1);
  o.moe.balance_all_choices = o.moe.balance_all_choices.value_or(o.moe.topk > 2);
  o.segments.token_types =
      o.segments.token_types.value_or(o.segments.binary_head || o.task.any() ? 2 : 0);
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
