#include "nn/attention.h"

#include <cmath>

#include "ops/attention/attention.h"
#include "ops/cache/cached_attention.h"
#include "ops/rotary/rotary.h"
#include "parallel/ulysses.h"

namespace bloomery {

SelfAttention::SelfAttention(const std::string& name, int layer, const ModelOptions& options,
                             const Mesh& mesh)
    : options_(options.attention),
      positions_(options.positions),
      layer_(layer),
      num_local_groups_(options_.num_groups / mesh.degree(Axis::tensor)),
      first_group_(num_local_groups_ * mesh.coordinate(Axis::tensor)),
      dropout_purpose_(concat("attention dropout/", layer)),
      qkv_(ParallelLinear::column(
          mesh, name + ".qkv",
          {options_.num_groups, options_.num_heads / options_.num_groups + 2, options_.head_dim}, 0,
          options.hidden_size, *options_.qkv_bias,
          weight_init(options, options.hidden_size,
                      (options_.num_heads + 2 * options_.num_groups) * options_.head_dim))),
      projection_(ParallelLinear::row(mesh, name + ".projection", options.hidden_size,
                                      options_.num_heads * options_.head_dim, *options_.output_bias,
                                      weight_init(options, options_.num_heads * options_.head_dim,
                                                  options.hidden_size, true))) {}

Value SelfAttention::operator()(Context& context, const LinearInput& x) const {
  const std::int64_t per_group = options_.num_heads / options_.num_groups;
  Value qkv = qkv_(context, x);
  if (positions_.rotary) {
    qkv = rotary(context, qkv,
                 {.num_groups = num_local_groups_,
                  .heads_per_group = per_group,
                  .head_dim = options_.head_dim,
                  .dim = positions_.rotary_dim(options_.head_dim),
                  .base = positions_.rotary_base,
                  .interleaved = positions_.rotary_interleaved,
                  .scaling = positions_.scaling});
  }
  AttentionOptions options{.num_heads = num_local_groups_ * per_group,
                           .num_groups = num_local_groups_,
                           .head_dim = options_.head_dim,
                           .scale = 1.0f / std::sqrt(static_cast<float>(options_.head_dim)),
                           .causal = options_.causal,
                           .dropout = {.probability = options_.dropout,
                                       .key = random_key(context.seed, dropout_purpose_)},
                           .first_head = first_group_ * per_group};
  if (context.batch.whole) {
    return projection_(context, of_whole_sequences(context, qkv, options));
  }
  return projection_(context, context.cache != nullptr
                                  ? cached_attention(context, qkv, layer_, options)
                                  : attention(context, qkv, options));
}

// This rank's share of the heads, over all parts of the sequences.
Value SelfAttention::of_whole_sequences(Context& context, const Value& qkv,
                                        AttentionOptions options) const {
  const int ranks = context.mesh.degree(Axis::context);
  options.num_heads /= ranks;
  options.num_groups /= ranks;
  options.first_head += options.num_heads * context.mesh.coordinate(Axis::context);
  Context whole = context.with_batch(*context.batch.whole);
  return tokens_of_all_heads(context,
                             attention(whole, heads_of_whole_sequences(context, qkv), options));
}

void SelfAttention::collect(ParameterList& parameters) const {
  qkv_.collect(parameters);
  projection_.collect(parameters);
}

}  // namespace bloomery
