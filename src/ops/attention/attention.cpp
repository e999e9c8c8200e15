#include "ops/attention/attention.h"

#include <cmath>

#include "ops/arithmetic/arithmetic.h"
#include "ops/dropout/dropout.h"

namespace bloomery {
namespace {

void check_options(const char* op, const AttentionOptions& o) {
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

void check_rows(const char* op, const char* what, const Value& x, std::int64_t rows,
                std::int64_t width) {
  check(x.shape().rank() >= 2 && x.shape()[0] == rows && x.data.numel() == rows * width, op, ": ",
        what, " has shape ", x.shape(), ", expected ", rows, " tokens of ", width,
        " numbers (heads, groups and head dimension must be those of the projection before it)");
}

void check_places(const char* op, const AttentionPlaces& at, bool dropout) {
  const std::int64_t queries = at.num_sequences * at.query_length;
  for (const auto& [name, range] :
       {std::pair{"key_begin", &at.key_begin}, {"key_end", &at.key_end}}) {
    check(!*range || (range->dtype() == DType::int32 && range->numel() == queries), op, ": ", name,
          " is ", range->dtype(), range->shape(), ", expected ", queries, " of int32");
  }
  check(static_cast<bool>(at.key_begin) == static_cast<bool>(at.key_end), op,
        ": there must be both key_begin and key_end, or neither");
  check(!dropout || (at.samples && at.query_places), op,
        ": dropout while training needs batch.samples and batch.places, which say where each token "
        "stands in the data");
  const std::int64_t keys = at.num_sequences * at.key_length;
  check(at.key_length <= INT32_MAX, op, ": ", at.key_length,
        " keys per sequence do not fit 31 bits");
  check(!at.key_places || at.query_places, op, ": places of keys need places of queries");
  check(
      !at.key_places || (at.key_places.dtype() == DType::int32 &&
                         (at.key_places.numel() == at.key_length || at.key_places.numel() == keys)),
      op, ": the places of keys are ", at.key_places.dtype(), at.key_places.shape(), ", expected ",
      at.key_length, " or ", keys, " of int32");
}

AttentionProblem make_problem(const char* op, const Context& context, const AttentionPlaces& at,
                              const AttentionOptions& o, DType dtype) {
  const std::uint32_t threshold = context.training ? dropout_threshold(o.dropout.probability) : 0;
  check_places(op, at, threshold > 0);
  AttentionProblem problem{
      .dtype = dtype,
      .num_sequences = at.num_sequences,
      .query_length = at.query_length,
      .key_length = at.key_length,
      .num_heads = o.num_heads,
      .num_groups = o.num_groups,
      .head_dim = o.head_dim,
      .scale = o.scale,
      .causal = o.causal,
      .key_begin = static_cast<const std::int32_t*>(at.key_begin.data()),
      .key_end = static_cast<const std::int32_t*>(at.key_end.data()),
      .dropout_threshold = threshold,
      .dropout_key = o.dropout.key,
      .first_head = o.first_head,
      .key_places = static_cast<const std::int32_t*>(at.key_places.data()),
      .key_place_per_token = at.key_places && at.key_places.numel() != at.key_length};
  if (threshold > 0 || at.key_places) {
    problem.places =
        token_places(op, at.samples, at.query_places, at.num_sequences, at.query_length);
  }
  return problem;
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

// All three lie in `q`, or keys and values in `kv`, if there is one.
Heads heads_in(const Tensor& q, const Tensor& kv, const AttentionProblem& p) {
  const std::int64_t queries = p.heads_per_group();
  if (kv) {
    return {heads_of(q, p, queries, 0), heads_of(kv, p, 2, 0), heads_of(kv, p, 2, 1)};
  }
  return {heads_of(q, p, queries + 2, 0), heads_of(q, p, queries + 2, queries),
          heads_of(q, p, queries + 2, queries + 1)};
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
// that finish() adds to the sink. Without a sink the scratch is dropped. Null like `like`.
class Overwritable {
 public:
  Overwritable(Tape& tape, const Slot& slot, const Tensor& like)
      : stream_(tape.stream()), sink_(tape.sink(slot)) {
    if (like) {
      buffer_ =
          sink_ && !sink_.add ? sink_.target : Tensor::empty(stream_, like.dtype(), like.shape());
    }
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

void backward(Tape& tape, const AttentionProblem& p, const Value& q, const Value& kv,
              const Tensor& out, const Tensor& lse, const Tensor& grad_out) {
  const Overwritable grad_q(tape, q.slot, q.data), grad_kv(tape, kv.slot, kv.data);
  const Heads heads = heads_in(q.data, kv.data, p);
  const Heads grads = heads_in(grad_q.buffer(), grad_kv.buffer(), p);
  launch(tape.stream(), AttentionBackward{.problem = p,
                                          .q = heads.q,
                                          .k = heads.k,
                                          .v = heads.v,
                                          .out = out,
                                          .lse = lse,
                                          .grad_out = grad_out,
                                          .grad_q = grads.q,
                                          .grad_k = grads.k,
                                          .grad_v = grads.v});
  grad_q.finish();
  grad_kv.finish();
}

// The op, of checked inputs. `at` is kept until backward, which reads its tensors.
Value attend(Context& context, const char* op, const Value& q, const Value& kv,
             const AttentionPlaces& at, const AttentionProblem& p) {
  const auto [y, lse] = run_forward(context, p, heads_in(q.data, kv.data, p));
  if (context.tape != nullptr) {
    context.tape->record({.op = op,
                          .input_gradient =
                              [p, at, q, kv, out = y.data, lse = lse, y = y.slot](Tape& tape) {
                                if (tape.grad(y) && (q.slot != nullptr || kv.slot != nullptr)) {
                                  backward(tape, p, q, kv, out, lse, tape.grad(y));
                                }
                              },
                          .saved = {q.data, kv.data, y.data, lse},
                          .shape = y.shape()});
  }
  return y;
}

}  // namespace

AttentionPlaces places_of(const Batch& batch) {
  return {.num_sequences = batch.num_sequences,
          .query_length = batch.length,
          .key_length = batch.length,
          .samples = batch.samples,
          .query_places = batch.places,
          .key_begin = batch.key_begin,
          .key_end = batch.key_end};
}

double flops(const AttentionForward& forward) { return 2 * product_flops(forward.problem); }
double flops(const AttentionBackward& backward) { return 4 * product_flops(backward.problem); }

Value attention(Context& context, const Value& qkv, const AttentionPlaces& places,
                const AttentionOptions& options) {
  constexpr const char* kOp = "attention";
  const OpScope scope(context.stream, kOp);
  check_options(kOp, options);
  check(places.query_length == places.key_length, kOp, ": ", places.query_length, " queries and ",
        places.key_length, " keys cannot lie in one buffer");
  const AttentionProblem p = make_problem(kOp, context, places, options, qkv.dtype());
  check_rows(kOp, "qkv", qkv, p.num_sequences * p.query_length,
             p.num_groups * (p.heads_per_group() + 2) * p.head_dim);
  return attend(context, kOp, qkv, {}, places, p);
}

Value attention(Context& context, const Value& qkv, const AttentionOptions& options) {
  return attention(context, qkv, places_of(context.batch), options);
}

Value attention(Context& context, const Value& q, const Value& kv, const AttentionPlaces& places,
                const AttentionOptions& options) {
  constexpr const char* kOp = "cross_attention";
  const OpScope scope(context.stream, kOp);
  check_options(kOp, options);
  check(q.dtype() == kv.dtype(), kOp, ": the queries are ", q.dtype(), ", the keys and values ",
        kv.dtype(), "; cast one of them");
  const AttentionProblem p = make_problem(kOp, context, places, options, q.dtype());
  check_rows(kOp, "q", q, p.num_sequences * p.query_length, p.num_heads * p.head_dim);
  check_rows(kOp, "kv", kv, p.num_sequences * p.key_length, p.num_groups * 2 * p.head_dim);
  return attend(context, kOp, q, kv, places, p);
}

}  // namespace bloomery
