#include "parallel/split_qkv.h"

#include "ops/arithmetic/copy_columns.h"

namespace bloomery {

Tensor keys_and_values(Stream& stream, const Tensor& qkv, const AttentionOptions& o) {
  const std::int64_t queries = o.num_heads / o.num_groups * o.head_dim, width = 2 * o.head_dim;
  const std::int64_t tokens = qkv.shape()[0];
  Tensor kv = Tensor::empty(stream, qkv.dtype(), {tokens, o.num_groups * width});
  launch(stream, CopyColumns{.x = qkv,
                             .y = kv,
                             .rows = tokens * o.num_groups,
                             .columns = width,
                             .x_width = queries + width,
                             .x_first = queries,
                             .y_width = width});
  return kv;
}

void write_qkv_gradient(Tape& tape, const Slot& qkv, const Tensor& grad_q, const Tensor& grad_kv,
                        const AttentionOptions& o) {
  const Sink sink = tape.sink(qkv);
  if (!sink) {
    return;
  }
  const std::int64_t queries = o.num_heads / o.num_groups * o.head_dim, keys = 2 * o.head_dim;
  const auto place = [&](const Tensor& from, std::int64_t first, std::int64_t columns) {
    launch(tape.stream(), CopyColumns{.x = from,
                                      .y = sink.target,
                                      .rows = from.shape()[0] * o.num_groups,
                                      .columns = columns,
                                      .x_width = columns,
                                      .y_width = queries + keys,
                                      .y_first = first,
                                      .add = sink.add});
  };
  place(grad_q, 0, queries);
  place(grad_kv, queries, keys);
}

}  // namespace bloomery
