#include "nn/cross_attention.h"

#include "ops/cache/cached_cross_attention.h"

namespace bloomery {

CrossAttention::CrossAttention(const std::string& name, int layer, const ModelOptions& options,
                               const Mesh& mesh, const CrossAttentionOptions& cross)
    : options_(options.attention),
      cross_(cross),
      layer_(layer),
      num_local_groups_(options_.num_groups / mesh.degree(Axis::tensor)),
      first_group_(num_local_groups_ * mesh.coordinate(Axis::tensor)),
      dropout_purpose_(concat("cross attention dropout/", layer)),
      query_(ParallelLinear::column(
          mesh, name + ".query",
          {options_.num_groups, options_.num_heads / options_.num_groups, options_.head_dim}, 0,
          options.hidden_size, *options_.qkv_bias,
          weight_init(options, options.hidden_size, options_.num_heads * options_.head_dim))),
      key_value_(ParallelLinear::column(
          mesh, name + ".key_value", {options_.num_groups, 2, options_.head_dim}, 0,
          options.hidden_size, *options_.qkv_bias,
          weight_init(options, options.hidden_size, 2 * options_.num_groups * options_.head_dim))),
      projection_(ParallelLinear::row(mesh, name + ".projection", options.hidden_size,
                                      options_.num_heads * options_.head_dim, *options_.output_bias,
                                      weight_init(options, options_.num_heads * options_.head_dim,
                                                  options.hidden_size, true))) {}

AttentionPlaces CrossAttention::places(const Batch& batch) const {
  AttentionPlaces places{.num_sequences = batch.num_sequences,
                         .query_length = batch.length,
                         .key_length = batch.encoder->length,
                         .samples = batch.samples,
                         .query_places = batch.places};
  if (cross_.masked) {
    places.key_begin = batch.encoder_key_begin;
    places.key_end = batch.encoder_key_end;
  }
  return places;
}

Value CrossAttention::operator()(Context& context, const LinearInput& x,
                                 const Value& encoder) const {
  const std::int64_t per_group = options_.num_heads / options_.num_groups;
  const AttentionOptions options{.num_heads = num_local_groups_ * per_group,
                                 .num_groups = num_local_groups_,
                                 .head_dim = options_.head_dim,
                                 .scale = score_scale(options_),
                                 .causal = false,
                                 .dropout = {.probability = options_.dropout,
                                             .key = random_key(context.seed, dropout_purpose_)},
                                 .first_head = first_group_ * per_group};
  const Value q = query_(context, x);
  if (context.cache != nullptr) {
    const Tensor kv = encoder ? key_value_(context, encoder).data : Tensor();
    return projection_(context, cached_cross_attention(context, q, kv, layer_, options));
  }
  const Value kv = key_value_(context, encoder);
  return projection_(context, attention(context, q, kv, places(context.batch), options));
}

void CrossAttention::collect(ParameterList& parameters) const {
  query_.collect(parameters);
  key_value_.collect(parameters);
  projection_.collect(parameters);
}

}  // namespace bloomery
