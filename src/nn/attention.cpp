#include "nn/attention.h"

#include <cmath>

#include "nn/adapter.h"
#include "ops/attention/attention.h"
#include "ops/cache/cached_attention.h"
#include "ops/head_norm/head_norm.h"
#include "ops/rotary/rotary.h"
#include "parallel/ring_attention.h"
#include "parallel/ulysses.h"

namespace bloomery {

float score_scale(const SelfAttentionOptions& options) {
  return options.scale ? static_cast<float>(*options.scale)
                       : 1.0f / std::sqrt(static_cast<float>(options.head_dim));
}

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
                      (options_.num_heads + 2 * options_.num_groups) * options_.head_dim),
          adapter_for(options, name + ".qkv"))),
      projection_(ParallelLinear::row(
          mesh, name + ".projection", options.hidden_size, options_.num_heads * options_.head_dim,
          *options_.output_bias,
          weight_init(options, options_.num_heads * options_.head_dim, options.hidden_size, true),
          adapter_for(options, name + ".projection"))),
      norm_(options.norm) {
  if (options_.head_norm) {
    const auto gain = [&](const char* whose) {
      const Init init{options.norm.one_plus_gain ? Init::Kind::zeros : Init::Kind::ones};
      auto parameter = std::make_unique<Parameter>(
          make_parameter(name + whose, Box::whole({options_.head_dim}), init, false));
      parameter->grad_axes = kTokenReplicaAxes;  // each tensor rank has the part of its heads
      return parameter;
    };
    query_gain_ = gain(".query_norm.gain");
    key_gain_ = gain(".key_norm.gain");
  }
}

Value SelfAttention::queries_and_keys(Context& context, const LinearInput& x,
                                      std::int64_t length) const {
  const std::int64_t per_group = options_.num_heads / options_.num_groups;
  Value qkv = qkv_(context, x);
  if (query_gain_) {
    qkv = head_norm(context, qkv, *query_gain_, *key_gain_,
                    {.num_groups = num_local_groups_,
                     .heads_per_group = per_group,
                     .head_dim = options_.head_dim,
                     .epsilon = norm_.epsilon,
                     .one_plus_gain = norm_.one_plus_gain});
  }
  if (positions_.rotary) {
    qkv = rotary(context, qkv,
                 {.num_groups = num_local_groups_,
                  .heads_per_group = per_group,
                  .head_dim = options_.head_dim,
                  .dim = positions_.rotary_dim(options_.head_dim),
                  .base = positions_.rotary_base,
                  .interleaved = positions_.rotary_interleaved,
                  .scaling = positions_.scaling,
                  .length = length});
  }
  return qkv;
}

AttentionOptions SelfAttention::attention_options(const Context& context,
                                                  Parameter* relative) const {
  const std::int64_t per_group = options_.num_heads / options_.num_groups;
  return {.num_heads = num_local_groups_ * per_group,
          .num_groups = num_local_groups_,
          .head_dim = options_.head_dim,
          .scale = score_scale(options_),
          .causal = options_.causal,
          .window = options_.window_of(layer_),
          .bias = {.table = relative, .max_distance = positions_.relative_distance},
          .dropout = {.probability = options_.dropout,
                      .key = random_key(context.seed, dropout_purpose_)},
          .first_head = first_group_ * per_group};
}

Value SelfAttention::operator()(Context& context, const LinearInput& x, Parameter* relative) const {
  const Value qkv = queries_and_keys(context, x, context.batch.whole_length());
  return projection_(context, attend(context, qkv, attention_options(context, relative)));
}

Value SelfAttention::attend(Context& context, const Value& qkv,
                            const AttentionOptions& options) const {
  if (context.cache != nullptr) {
    return cached_attention(context, qkv, layer_, options);
  }
  const auto of_sequences = [](Context& of, const Value& all, const AttentionOptions& o) {
    return of.batch.whole ? ring_attention(of, all, o) : attention(of, all, o);
  };
  if (context.batch.whole && context.mesh.degree(Axis::ulysses) > 1) {
    Context whole = context.with_batch(*context.batch.whole);
    return tokens_of_all_heads(context, of_sequences(whole, heads_of_whole_sequences(context, qkv),
                                                     of_some_heads(context, options)));
  }
  return of_sequences(context, qkv, options);
}

// This rank's share of the heads, over all parts of the sequences that its group holds.
AttentionOptions SelfAttention::of_some_heads(const Context& context,
                                              AttentionOptions options) const {
  const int ranks = context.mesh.degree(Axis::ulysses);
  options.num_heads /= ranks;
  options.num_groups /= ranks;
  options.first_head += options.num_heads * context.mesh.coordinate(Axis::ulysses);
  return options;
}

Value SelfAttention::of_chunk(Context& context, const Value& qkv, KeysOfChunks& keys,
                              std::int64_t chunk) const {
  const AttentionOptions options = attention_options(context, nullptr);
  if (!context.batch.whole) {
    return projection_(context, chunk_attention(context, qkv, options, keys, chunk));
  }
  Context whole = context.with_batch(*context.batch.whole);
  const Value heads = chunk_attention(whole, heads_of_whole_sequences(context, qkv),
                                      of_some_heads(context, options), keys, chunk);
  return projection_(context, tokens_of_all_heads(context, heads));
}

void SelfAttention::keep_keys_of(Context& context, const Value& qkv, KeysOfChunks& keys,
                                 std::int64_t chunk) const {
  const AttentionOptions options = attention_options(context, nullptr);
  if (!context.batch.whole) {
    return keep_keys(context, qkv, options, keys, chunk);
  }
  Context whole = context.with_batch(*context.batch.whole);
  keep_keys(whole, heads_of_whole_sequences(context, qkv), of_some_heads(context, options), keys,
            chunk);
}

void SelfAttention::collect(ParameterList& parameters) const {
  qkv_.collect(parameters);
  for (Parameter* const gain : {query_gain_.get(), key_gain_.get()}) {
    if (gain != nullptr) {
      parameters.push_back(gain);
    }
  }
  projection_.collect(parameters);
}

}  // namespace bloomery
