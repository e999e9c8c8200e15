#include "parallel/chunk_attention.h"

#include "ops/arithmetic/arithmetic.h"
#include "ops/attention/attention_call.h"
#include "ops/attention/attention_merge.h"
#include "parallel/split_qkv.h"

namespace bloomery {
namespace {

constexpr const char* kOp = "chunk_attention";

// The queries of one chunk and the keys that they see.
class ChunkAttention {
 public:
  ChunkAttention(Context& context, const Value& qkv, const AttentionOptions& options,
                 KeysOfChunks& keys, std::int64_t chunk);
  struct Result {
    Tensor out, lse;
  };
  Result forward(Stream& stream) const;
  void backward(Tape& tape, const Result& result, const Tensor& grad_out) const;

 private:
  bool visible(std::int64_t chunk) const;  // to some query here
  AttentionPlaces places(std::int64_t chunk) const;
  const AttentionProblem& problem(std::int64_t chunk) const {
    return problems_[static_cast<std::size_t>(chunk - first_)];
  }
  std::int64_t queries_width() const { return options_.num_heads * options_.head_dim; }
  Tensor keys(std::int64_t chunk) const;
  void attend(Stream& stream, std::int64_t chunk, const Tensor& sum, const Tensor& lse) const;
  void differentiate(Stream& stream, std::int64_t chunk, const Result& of, const Tensor& grad_out,
                     const Tensor& grad_q, const Tensor& grad_kv) const;
  Tensor add_to_gradients(Stream& stream, std::int64_t chunk, const Tensor& part) const;

  Batch batch_;  // its tensors, which the problems read
  Value qkv_;
  AttentionOptions options_;
  KeysOfChunks& keys_;
  std::int64_t chunk_, first_;  // this one, and the first whose keys are seen
  bool by_places_;              // else keys are in order, and all seen or causal
  DType sums_;
  std::vector<AttentionProblem> problems_;  // of the chunks first_, ..., chunk_
};

ChunkAttention::ChunkAttention(Context& context, const Value& qkv, const AttentionOptions& o,
                               KeysOfChunks& keys, std::int64_t chunk)
    : batch_(context.batch),
      qkv_(qkv),
      options_(o),
      keys_(keys),
      chunk_(chunk),
      first_(0),
      by_places_(o.window > 0 || batch_.key_begin ||
                 (context.training && o.dropout.probability > 0)),
      sums_(accumulation_dtype(qkv.dtype())) {
  check_options(kOp, o);
  check(batch_.num_sequences == 1 && o.causal && !o.bias, kOp,
        ": a chunk is of one sequence, causal, and knows no relative bias");
  check_rows(kOp, "qkv", qkv, batch_.length, (o.num_heads + 2 * o.num_groups) * o.head_dim);
  keys_.places.at(static_cast<std::size_t>(chunk)) = batch_.places;
  while (!visible(first_)) {
    ++first_;
  }
  for (std::int64_t each = first_; each <= chunk_; ++each) {
    AttentionOptions options = o;
    options.causal = by_places_ || each == chunk_;
    options.window = options.causal ? o.window : 0;
    problems_.push_back(attention_problem(kOp, context, places(each), options, qkv.dtype()));
  }
}

bool ChunkAttention::visible(std::int64_t chunk) const {
  return options_.window == 0 ||
         keys_.end_of(chunk) > keys_.begin_of(chunk_) - options_.window + 1 || chunk == chunk_;
}

AttentionPlaces ChunkAttention::places(std::int64_t chunk) const {
  AttentionPlaces at{.num_sequences = 1,
                     .query_length = batch_.length,
                     .key_length = keys_.end_of(chunk) - keys_.begin_of(chunk)};
  if (by_places_) {
    at.samples = batch_.samples;
    at.query_places = batch_.places;
    at.key_places = keys_.places[static_cast<std::size_t>(chunk)];
    at.key_begin = batch_.key_begin;
    at.key_end = batch_.key_end;
  }
  return at;
}

// Of an earlier chunk; those of this one lie in qkv, and the tensor is null.
Tensor ChunkAttention::keys(std::int64_t chunk) const {
  return chunk < chunk_ ? keys_.keys.get(chunk) : Tensor();
}

void ChunkAttention::attend(Stream& stream, std::int64_t chunk, const Tensor& sum,
                            const Tensor& lse) const {
  const AttentionProblem& p = problem(chunk);
  const Tensor kv = keys(chunk);
  const Tensor part = Tensor::empty(stream, p.dtype, {p.query_length, queries_width()});
  const Tensor part_lse = Tensor::empty(stream, sums_, {options_.num_heads, p.query_length});
  const AttentionHeads own = heads_in(qkv_.data, {}, p), theirs = heads_in(qkv_.data, kv, p);
  launch(stream,
         AttentionForward{
             .problem = p, .q = own.q, .k = theirs.k, .v = theirs.v, .out = part, .lse = part_lse});
  launch(stream, AttentionMerge{.out = part,
                                .lse = part_lse,
                                .sum = sum,
                                .sum_lse = lse,
                                .num_heads = options_.num_heads,
                                .head_dim = options_.head_dim,
                                .num_queries = p.query_length,
                                .length = p.query_length,
                                .start = chunk == chunk_});
}

// From this chunk back to the first that is seen; the keys of the next arrive meanwhile.
ChunkAttention::Result ChunkAttention::forward(Stream& stream) const {
  const Tensor sum = Tensor::empty(stream, sums_, {batch_.length, queries_width()});
  const Tensor lse = Tensor::empty(stream, sums_, {options_.num_heads, batch_.length});
  for (std::int64_t chunk = chunk_; chunk >= first_; --chunk) {
    if (chunk > first_) {
      keys_.keys.fetch(chunk - 1);
    }
    attend(stream, chunk, sum, lse);
  }
  if (sums_ == qkv_.dtype()) {
    return {sum, lse};
  }
  const Tensor out = Tensor::empty(stream, qkv_.dtype(), sum.shape());
  launch(stream, ScaleAdd{.x = sum, .y = out});
  return {out, lse};
}

void ChunkAttention::differentiate(Stream& stream, std::int64_t chunk, const Result& of,
                                   const Tensor& grad_out, const Tensor& grad_q,
                                   const Tensor& grad_kv) const {
  const AttentionProblem& p = problem(chunk);
  const Tensor kv = keys(chunk);
  const AttentionHeads own = heads_in(qkv_.data, {}, p), theirs = heads_in(qkv_.data, kv, p);
  const AttentionHeads to = heads_in(grad_q, grad_kv, p);
  launch(stream, AttentionBackward{.problem = p,
                                   .q = own.q,
                                   .k = theirs.k,
                                   .v = theirs.v,
                                   .out = of.out,
                                   .lse = of.lse,
                                   .grad_out = grad_out,
                                   .grad_q = to.q,
                                   .grad_k = to.k,
                                   .grad_v = to.v});
}

// Together with what later chunks gave.
Tensor ChunkAttention::add_to_gradients(Stream& stream, std::int64_t chunk,
                                        const Tensor& part) const {
  const bool add = keys_.gradients.has(chunk);
  Tensor sum = add ? keys_.gradients.get(chunk) : Tensor::empty(stream, sums_, part.shape());
  launch(stream, ScaleAdd{.x = part, .y = sum, .add = add});
  return sum;
}

// The keys of this chunk have been seen by all that see them when its own queries have.
void ChunkAttention::backward(Tape& tape, const Result& result, const Tensor& grad_out) const {
  Stream& stream = tape.stream();
  const Tensor sum_q = Tensor::empty(stream, sums_, {batch_.length, queries_width()});
  const Tensor part_q = Tensor::empty(stream, qkv_.dtype(), sum_q.shape());
  Tensor own;
  for (std::int64_t chunk = chunk_; chunk >= first_; --chunk) {
    keys_.gradients.fetch(chunk);
    if (chunk > first_) {
      keys_.keys.fetch(chunk - 1);
    }
    const Tensor part_kv =
        Tensor::empty(stream, qkv_.dtype(),
                      {problem(chunk).key_length, options_.num_groups * 2 * options_.head_dim});
    differentiate(stream, chunk, result, grad_out, part_q, part_kv);
    launch(stream, ScaleAdd{.x = part_q, .y = sum_q, .add = chunk != chunk_});
    Tensor sum = add_to_gradients(stream, chunk, part_kv);
    if (chunk == chunk_) {
      own = std::move(sum);
    } else {
      keys_.gradients.put(chunk, std::move(sum));
    }
  }
  write_qkv_gradient(tape, qkv_.slot, sum_q, own, options_);
}

}  // namespace

KeysOfChunks::KeysOfChunks(Stream& compute, OffloadPool* offload_pool,
                           std::vector<std::int64_t> all_ends)
    : ends(std::move(all_ends)),
      places(ends.size()),
      keys(compute, offload_pool, static_cast<std::int64_t>(ends.size())),
      gradients(compute, offload_pool, static_cast<std::int64_t>(ends.size())) {}

void keep_keys(Context& context, const Value& qkv, const AttentionOptions& options,
               KeysOfChunks& keys, std::int64_t chunk) {
  const OpScope scope(context.stream, "keep_keys");
  keys.places.at(static_cast<std::size_t>(chunk)) = context.batch.places;
  keys.keys.put(chunk, keys_and_values(context.stream, qkv.data, options));
}

Value chunk_attention(Context& context, const Value& qkv, const AttentionOptions& options,
                      KeysOfChunks& keys, std::int64_t chunk) {
  const OpScope scope(context.stream, kOp);
  const auto call = std::make_shared<const ChunkAttention>(context, qkv, options, keys, chunk);
  const bool last = chunk + 1 == static_cast<std::int64_t>(keys.ends.size());
  if (!last && !keys.keys.has(chunk)) {
    keys.keys.put(chunk, keys_and_values(context.stream, qkv.data, options));
  }
  const ChunkAttention::Result result = call->forward(context.stream);
  Value y = context.wrap(result.out);
  if (context.tape != nullptr && qkv.wants_grad()) {
    context.tape->record({.op = kOp,
                          .input_gradient =
                              [call, result, y = y.slot](Tape& tape) {
                                if (tape.grad(y)) {
                                  call->backward(tape, result, tape.grad(y));
                                }
                              },
                          .saved = {qkv.data, result.out, result.lse},
                          .shape = y.shape()});
  }
  return y;
}

}  // namespace bloomery
