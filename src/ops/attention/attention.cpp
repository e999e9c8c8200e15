#include "ops/attention/attention.h"

#include <cmath>

#include "ops/arithmetic/arithmetic.h"

namespace bloomery {
namespace {

// The tensors of the batch that backward still reads.
struct BatchTensors {
  Tensor key_begin, key_end, samples, places;
};

void check_options(std::string_view op, const AttentionOptions& o) {
  check(o.num_heads > 0 && o.num_groups > 0 && o.head_dim > 0, op, ": ", o.num_heads, " heads in ",
        o.num_groups, " groups of head dimension ", o.head_dim, " must all be positive");
  check(o.num_heads % o.num_groups == 0, op, ": ", o.num_heads, " query heads cannot share ",
        o.num_groups, " key/value heads evenly; choose a number of groups that divides the heads");
  check(std::isfinite(o.scale) && o.scale > 0, op,
        ": the scale of the scores must be positive, not ", o.scale);
  check(o.dropout.probability >= 0 && o.dropout.probability < 1, op,
        ": the dropout probability must be in [0, 1), not ", o.dropout.probability);
  check(o.first_head >= 0 && o.first_head + o.num_heads <= 65536, op, ": heads ", o.first_head,
        " to ", o.first_head + o.num_heads, ", but at most 65536 can be told apart by dropout");
}

void check_rows(std::string_view op, const char* what, const Value& x, std::int64_t rows,
                std::int64_t width) {
  check(x.shape().rank() >= 2 && x.shape()[0] == rows && x.data.numel() == rows * width, op, ": ",
        what, " has shape ", x.shape(), ", expected ", rows, " tokens of ", width,
        " numbers (heads, groups and head dimension must be those of the projection before it)");
}

void check_integers(std::string_view op, const char* what, const Tensor& x, DType dtype,
                    std::int64_t count) {
  check(!x || (x.dtype() == dtype && x.numel() == count), op, ": batch.", what, " is ", x.dtype(),
        x.shape(), ", expected ", count, " of ", dtype);
}

BatchTensors batch_tensors(std::string_view op, const Batch& batch, bool dropout) {
  check_integers(op, "key_begin", batch.key_begin, DType::int32, batch.num_tokens());
  check_integers(op, "key_end", batch.key_end, DType::int32, batch.num_tokens());
  check(static_cast<bool>(batch.key_begin) == static_cast<bool>(batch.key_end), op,
        ": the batch must have both key_begin and key_end, or neither");
  if (!dropout) {
    return {batch.key_begin, batch.key_end, {}, {}};
  }
  check(batch.samples && batch.places, op,
        ": dropout while training needs batch.samples and batch.places, which say where each token "
        "stands in the data");
  check_integers(op, "samples", batch.samples, DType::int64, batch.num_sequences);
  check_integers(op, "places", batch.places, DType::int32, batch.length);
  return {batch.key_begin, batch.key_end, batch.samples, batch.places};
}

AttentionProblem make_problem(std::string_view op, Context& context, const AttentionOptions& o,
                              DType dtype, std::int64_t key_length, BatchTensors& tensors) {
  const Batch& batch = context.batch;
  check(key_length <= INT32_MAX, op, ": ", key_length, " keys per sequence do not fit 31 bits");
  const std::uint32_t threshold = context.training ? dropout_threshold(o.dropout.probability) : 0;
  tensors = batch_tensors(op, batch, threshold > 0);
  return {.dtype = dtype,
          .num_sequences = batch.num_sequences,
          .query_length = batch.length,
          .key_length = key_length,
          .num_heads = o.num_heads,
          .num_groups = o.num_groups,
          .head_dim = o.head_dim,
          .scale = o.scale,
          .causal = o.causal,
          .key_begin = static_cast<const std::int32_t*>(tensors.key_begin.data()),
          .key_end = static_cast<const std::int32_t*>(tensors.key_end.data()),
          .dropout_threshold = threshold,
          .dropout_key = o.dropout.key,
          .places = {.samples = static_cast<const std::int64_t*>(tensors.samples.data()),
                     .places = static_cast<const std::int32_t*>(tensors.places.data()),
                     .length = batch.length},
          .first_head = o.first_head};
}

// `heads` heads per group in a token of `buffer`, of which the first wanted is number `index`.
HeadView heads_of(const Tensor& buffer, const AttentionProblem& p, std::int64_t heads,
                  std::int64_t index) {
  const std::int64_t group_stride = heads * p.head_dim;
  return {.data = static_cast<char*>(buffer.data()) +
                  static_cast<std::size_t>(index * p.head_dim) * size_of(p.dtype),
          .token_stride = p.num_groups * group_stride,
          .group_stride = group_stride};
}

struct Heads {
  HeadView q, k, v;
};

Heads fused_heads(const Tensor& qkv, const AttentionProblem& p) {
  const std::int64_t queries = p.heads_per_group();
  return {heads_of(qkv, p, queries + 2, 0), heads_of(qkv, p, queries + 2, queries),
          heads_of(qkv, p, queries + 2, queries + 1)};
}

Heads separate_heads(const Tensor& q, const Tensor& kv, const AttentionProblem& p) {
  return {heads_of(q, p, p.heads_per_group(), 0), heads_of(kv, p, 2, 0), heads_of(kv, p, 2, 1)};
}

// Of scores, or of values weighted by them.
double product_flops(const AttentionProblem& p) {
  return 2.0 * static_cast<double>(p.num_sequences * p.num_heads * p.head_dim) *
         static_cast<double>(p.query_length) * static_cast<double>(p.key_length);
}

struct Result {
  Value out;
  Tensor lse;
};

Result run_forward(Context& context, const AttentionProblem& p, const Heads& heads) {
  Result result{
      context.output(p.dtype, {p.num_sequences * p.query_length, p.num_heads * p.head_dim}),
      Tensor::empty(context.stream, accumulation_dtype(p.dtype),
                    {p.num_sequences, p.num_heads, p.query_length})};
  launch(context.stream, AttentionForward{.problem = p,
                                          .q = heads.q,
                                          .k = heads.k,
                                          .v = heads.v,
                                          .out = result.out.data,
                                          .lse = result.lse});
  return result;
}

// A gradient that the kernel can overwrite: the sink's buffer if it has nothing yet, else scratch
// that finish() adds to the sink. Without a sink the scratch is dropped.
class Overwritable {
 public:
  Overwritable(Tape& tape, const Slot& slot, const Tensor& like)
      : stream_(tape.stream()), sink_(tape.sink(slot)) {
    buffer_ =
        sink_ && !sink_.add ? sink_.target : Tensor::empty(stream_, like.dtype(), like.shape());
  }
  const Tensor& buffer() const { return buffer_; }
  void finish() const {
    if (sink_ && sink_.add) {
      write_grad(stream_, buffer_, sink_);
    }
  }

 private:
  Stream& stream_;
  Sink sink_;
  Tensor buffer_;
};

}  // namespace

double flops(const AttentionForward& forward) { return 2 * product_flops(forward.problem); }
double flops(const AttentionBackward& backward) { return 4 * product_flops(backward.problem); }

Value attention(Context& context, const Value& qkv, const AttentionOptions& options) {
  const OpScope scope(context.stream, "attention");
  check_options("attention", options);
  BatchTensors tensors;
  const AttentionProblem p =
      make_problem("attention", context, options, qkv.dtype(), context.batch.length, tensors);
  check_rows("attention", "qkv", qkv, context.batch.num_tokens(),
             p.num_groups * (p.heads_per_group() + 2) * p.head_dim);
  const auto [y, lse] = run_forward(context, p, fused_heads(qkv.data, p));
  if (context.tape != nullptr) {
    context.tape->record({.op = "attention",
                          .input_gradient =
                              [p, tensors, qkv, out = y.data, lse = lse, y = y.slot](Tape& tape) {
                                if (!tape.grad(y) || qkv.slot == nullptr) {
                                  return;
                                }
                                const Overwritable grad(tape, qkv.slot, qkv.data);
                                const Heads heads = fused_heads(qkv.data, p);
                                const Heads grads = fused_heads(grad.buffer(), p);
                                launch(tape.stream(), AttentionBackward{.problem = p,
                                                                        .q = heads.q,
                                                                        .k = heads.k,
                                                                        .v = heads.v,
                                                                        .out = out,
                                                                        .lse = lse,
                                                                        .grad_out = tape.grad(y),
                                                                        .grad_q = grads.q,
                                                                        .grad_k = grads.k,
                                                                        .grad_v = grads.v});
                                grad.finish();
                              },
                          .saved = {qkv.data, y.data, lse},
                          .shape = y.shape()});
  }
  return y;
}

Value cross_attention(Context& context, const Value& q, const Value& kv, std::int64_t key_length,
                      const AttentionOptions& options) {
  const OpScope scope(context.stream, "cross_attention");
  check_options("cross_attention", options);
  check(q.dtype() == kv.dtype(), "cross_attention: the queries are ", q.dtype(),
        ", the keys and values ", kv.dtype(), "; cast one of them");
  BatchTensors tensors;
  const AttentionProblem p =
      make_problem("cross_attention", context, options, q.dtype(), key_length, tensors);
  check_rows("cross_attention", "q", q, context.batch.num_tokens(), p.num_heads * p.head_dim);
  check_rows("cross_attention", "kv", kv, p.num_sequences * key_length,
             p.num_groups * 2 * p.head_dim);
  const auto [y, lse] = run_forward(context, p, separate_heads(q.data, kv.data, p));
  if (context.tape != nullptr) {
    context.tape->record({.op = "cross_attention",
                          .input_gradient =
                              [p, tensors, q, kv, out = y.data, lse = lse, y = y.slot](Tape& tape) {
                                if (!tape.grad(y) || (q.slot == nullptr && kv.slot == nullptr)) {
                                  return;
                                }
                                const Overwritable grad_q(tape, q.slot, q.data),
                                    grad_kv(tape, kv.slot, kv.data);
                                const Heads heads = separate_heads(q.data, kv.data, p);
                                const Heads grads =
                                    separate_heads(grad_q.buffer(), grad_kv.buffer(), p);
                                launch(tape.stream(), AttentionBackward{.problem = p,
                                                                        .q = heads.q,
                                                                        .k = heads.k,
                                                                        .v = heads.v,
                                                                        .out = out,
                                                                        .lse = lse,
                                                                        .grad_out = tape.grad(y),
                                                                        .grad_q = grads.q,
                                                                        .grad_k = grads.k,
                                                                        .grad_v = grads.v});
                                grad_q.finish();
                                grad_kv.finish();
                              },
                          .saved = {q.data, kv.data, y.data, lse},
                          .shape = y.shape()});
  }
  return y;
}

}  // namespace bloomery
