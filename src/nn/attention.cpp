#include "nn/attention.h"

#include <cmath>

#include "ops/attention/attention.h"
#include "ops/cache/cached_attention.h"

namespace bloomery {
namespace {

std::int64_t local_groups(const TransformerOptions& options, const Mesh& mesh) {
  const int tensor = mesh.degree(Axis::tensor);
  check(options.num_groups > 0 && options.num_heads % options.num_groups == 0,
        "attention: ", options.num_heads, " heads cannot be shared by ", options.num_groups,
        " key/value heads: choose a divisor with --num-key-value-heads");
  check(options.num_groups % tensor == 0, "attention: ", options.num_groups,
        " key/value heads cannot be divided among ", tensor,
        " tensor-parallel ranks: choose --tensor-model-parallel-size that divides them");
  return options.num_groups / tensor;
}

}  // namespace

SelfAttention::SelfAttention(const std::string& name, int layer, const TransformerOptions& options,
                             const Mesh& mesh)
    : options_(options),
      layer_(layer),
      num_local_groups_(local_groups(options, mesh)),
      first_group_(num_local_groups_ * mesh.coordinate(Axis::tensor)),
      dropout_purpose_(concat("attention dropout/", layer)),
      qkv_(mesh, name + ".qkv",
           {options.num_groups, options.num_heads / options.num_groups + 2, options.head_dim}, 0,
           options.hidden, options.bias,
           weight_init(options, options.weight_init, options.hidden,
                       (options.num_heads + 2 * options.num_groups) * options.head_dim)),
      projection_(mesh, name + ".projection", options.hidden, options.num_heads * options.head_dim,
                  options.bias,
                  weight_init(options, options.output_init, options.num_heads * options.head_dim,
                              options.hidden)) {}

Value SelfAttention::operator()(Context& context, const Value& x) const {
  const std::int64_t per_group = options_.num_heads / options_.num_groups;
  Value qkv = qkv_(context, x);
  if (options_.positions == PositionKind::rotary) {
    qkv = rotary(context, qkv,
                 {.num_groups = num_local_groups_,
                  .heads_per_group = per_group,
                  .head_dim = options_.head_dim,
                  .dim = options_.rotary_dim,
                  .base = options_.rotary_base,
                  .interleaved = options_.rotary_interleaved});
  }
  const AttentionOptions options{.num_heads = num_local_groups_ * per_group,
                                 .num_groups = num_local_groups_,
                                 .head_dim = options_.head_dim,
                                 .scale = 1.0f / std::sqrt(static_cast<float>(options_.head_dim)),
                                 .causal = options_.causal,
                                 .dropout = {.probability = options_.attention_dropout,
                                             .key = random_key(context.seed, dropout_purpose_)},
                                 .first_head = first_group_ * per_group};
  return projection_(context, context.cache != nullptr
                                  ? cached_attention(context, qkv, layer_, options)
                                  : attention(context, qkv, options));
}

void SelfAttention::collect(ParameterList& parameters) const {
  qkv_.collect(parameters);
  projection_.collect(parameters);
}

}  // namespace bloomery
