#include "ops/cache/cached_attention.h"

#include "ops/attention/attention_call.h"

namespace bloomery {
namespace {

// From so many queries of one sequence on it pays to lay its keys next to each other for the
// kernels that work on tiles.
constexpr std::int64_t kManyQueries = 32;

// A piece of one long text: its queries are the last tokens.
Value attend_by_tiles(Context& context, const CacheProblem& cached, const Tensor& qkv,
                      const Tensor& kept, const AttentionOptions& options) {
  const AttentionProblem problem =
      attention_problem("cached_attention", context,
                        {.num_sequences = 1,
                         .query_length = cached.length,
                         .key_length = context.cache->length_of_only()},
                        options, cached.dtype);
  const Tensor kv =
      Tensor::empty(context.stream, cached.dtype, {problem.key_length, cached.cache_stride()});
  launch(context.stream, GatherFromCache{.problem = cached, .cache = kept, .kv = kv});
  Value out = context.output(cached.dtype, {cached.length, problem.num_heads * problem.head_dim});
  const Tensor lse = Tensor::empty(context.stream, accumulation_dtype(cached.dtype),
                                   {problem.num_heads, cached.length});
  const AttentionHeads keys = heads_in(qkv, kv, problem);
  launch(context.stream, AttentionForward{.problem = problem,
                                          .q = heads_in(qkv, {}, problem).q,
                                          .k = keys.k,
                                          .v = keys.v,
                                          .out = out.data,
                                          .lse = lse});
  return out;
}

}  // namespace

Value cached_attention(Context& context, const Value& qkv, int layer,
                       const AttentionOptions& options) {
  check(context.cache != nullptr, "cached_attention: the context has no cache");
  check(context.tape == nullptr && !context.training,
        "cached_attention: generation has neither gradients nor dropout");
  check(options.causal, "cached_attention: only causal attention can be continued");
  check(options.num_groups > 0 && options.num_heads % options.num_groups == 0,
        "cached_attention: ", options.num_heads, " query heads cannot share ", options.num_groups,
        " key/value heads evenly");
  Cache& cache = *context.cache;
  const Batch& batch = context.batch;
  check(batch.num_sequences == cache.num_rows() && batch.length == cache.batch_length(),
        "cached_attention: a batch of ", batch.num_sequences, " sequences and ", batch.length,
        " tokens, but the cache was told of ", cache.num_rows(), " and ", cache.batch_length());
  check(!batch.key_begin && !batch.key_end,
        "cached_attention: key ranges (documents in one sequence) cannot be continued");
  const CacheProblem problem{.dtype = qkv.dtype(),
                             .num_sequences = batch.num_sequences,
                             .length = batch.length,
                             .capacity = cache.capacity(),
                             .num_groups = options.num_groups,
                             .heads_per_group = options.num_heads / options.num_groups,
                             .head_dim = options.head_dim,
                             .places = cache.places()};
  check(qkv.data.numel() == batch.num_tokens() * problem.qkv_stride(), "cached_attention: qkv is ",
        qkv.shape(), ", expected ", batch.num_tokens(), " tokens of ", problem.qkv_stride(),
        " numbers");
  const Tensor& kept = cache.layer(layer, qkv.dtype(), options.num_groups, options.head_dim);
  if (cache.was_empty()) {  // padding comes last, so that causal attention does not see it
    launch(context.stream, AppendToCache{.problem = problem, .qkv = qkv.data, .cache = kept});
    return attention(context, qkv, options);
  }
  if (cache.length_of_only() > 0 && batch.length >= kManyQueries && !options.bias) {
    launch(context.stream, AppendToCache{.problem = problem, .qkv = qkv.data, .cache = kept});
    return attend_by_tiles(context, problem, qkv.data, kept, options);
  }
  Value out =
      context.output(qkv.dtype(), {batch.num_tokens(), options.num_heads * options.head_dim});
  const Tensor bias = bias_by_distance(context.stream, "cached_attention", options.bias,
                                       options.num_heads, true, 1);
  launch(context.stream, CachedAttention{.problem = problem,
                                         .scale = options.scale,
                                         .window = options.window,
                                         .bias = bias.data(),
                                         .bias_reach = options.bias.max_distance,
                                         .qkv = qkv.data,
                                         .cache = kept,
                                         .out = out.data,
                                         .arrivals = cache.arrivals()});
  return out;
}

}  // namespace bloomery
