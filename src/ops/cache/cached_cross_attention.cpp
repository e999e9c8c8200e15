#include "ops/cache/cached_cross_attention.h"

#include "device/op_clock.h"

namespace bloomery {

Value cached_cross_attention(Context& context, const Value& q, const Tensor& kv, int layer,
                             const AttentionOptions& options) {
  constexpr const char* kOp = "cached_cross_attention";
  const OpScope scope(context.stream, kOp);
  check(context.cache != nullptr, kOp, ": the context has no cache");
  check(context.tape == nullptr && !context.training, kOp,
        ": generation has neither gradients nor dropout");
  check(options.num_groups > 0 && options.num_heads % options.num_groups == 0, kOp, ": ",
        options.num_heads, " query heads cannot share ", options.num_groups,
        " key/value heads evenly");
  Cache& cache = *context.cache;
  const Batch& batch = context.batch;
  if (kv) {
    cache.keep_text_layer(layer, kv);
  }
  const Tensor& kept = cache.text_layer(layer);
  const CachedCrossAttention kernel{.dtype = q.dtype(),
                                    .num_rows = batch.num_sequences,
                                    .length = batch.length,
                                    .text_length = cache.text_length(),
                                    .num_groups = options.num_groups,
                                    .heads_per_group = options.num_heads / options.num_groups,
                                    .head_dim = options.head_dim,
                                    .scale = options.scale,
                                    .slots = cache.places().slots,
                                    .counts = cache.places().counts,
                                    .texts = cache.texts(),
                                    .text_lengths = cache.text_lengths(),
                                    .q = q.data,
                                    .kv = kept};
  const std::int64_t width = options.num_heads * options.head_dim;
  check(batch.num_sequences == cache.num_rows() && batch.length == cache.batch_length() &&
            q.data.numel() == batch.num_tokens() * width && q.dtype() == kept.dtype() &&
            kept.numel() == cache.num_texts() * cache.text_length() * kernel.key_stride(),
        kOp, ": q ", q.dtype(), q.shape(), " of ", batch.num_tokens(), " tokens does not fit ",
        cache.num_texts(), " texts of ", cache.text_length(), " places with keys and values ",
        kept.dtype(), kept.shape());
  Value out = context.output(q.dtype(), {batch.num_tokens(), width});
  CachedCrossAttention call = kernel;
  call.out = out.data;
  launch(context.stream, call);
  return out;
}

}  // namespace bloomery
