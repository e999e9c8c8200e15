#include "parallel/ring_attention.h"

#include "comm/mesh.h"
#include "ops/arithmetic/arithmetic.h"
#include "ops/arithmetic/copy_columns.h"
#include "ops/attention/attention_call.h"
#include "ops/attention/attention_merge.h"
#include "parallel/async_collective.h"
#include "parallel/sequence_parts.h"
#include "parallel/split_qkv.h"

namespace bloomery {
namespace {

constexpr const char* kOp = "ring_attention";

// What a rank does with the keys of one rank of the ring: some of its queries see some of them.
struct Step {
  Piece queries, keys;
  bool causal = false;                     // else these queries see all of these keys
  std::vector<AttentionProblem> problems;  // by sequence
};

// Queries and keys are each the piece near the front, then the one near the back. Of a rank further
// ahead all keys of the second piece are behind all queries here; of a rank further back only the
// queries of the second piece see keys, but all of them.
Step step_of(int rank, int source, std::int64_t length, bool causal) {
  Step step{.queries = {0, length}, .keys = {0, length}};
  if (causal && source == rank) {
    step.causal = true;
  } else if (causal && source < rank) {
    step.keys = {0, length / 2};
  } else if (causal) {
    step.queries = {length / 2, length / 2};
  }
  return step;
}

// A buffer that passes from each rank of a ring to the next.
class Passing {
 public:
  Passing(Communicator& ring, Stream* communication, Tensor first)
      : ring_(ring), async_(communication), here_(std::move(first)) {}

  const Tensor& here() const { return here_; }
  void start(Stream& stream) {
    if (!coming_) {
      coming_ = Tensor::empty(stream, here_.dtype(), here_.shape());
    }
    async_.start(stream, [this](Stream& on) {
      const int ranks = ring_.size(), rank = ring_.rank();
      const Transfer both[] = {{Transfer::Kind::send, here_, (rank + 1) % ranks},
                               {Transfer::Kind::receive, coming_, (rank + ranks - 1) % ranks}};
      ring_.exchange(both, on);
    });
  }
  void finish(Stream& stream) {
    async_.wait(stream);
    std::swap(here_, coming_);
  }

 private:
  Communicator& ring_;
  AsyncCollective async_;
  Tensor here_, coming_;
};

class RingAttention {
 public:
  RingAttention(Context& context, const Value& qkv, const AttentionOptions& options);
  struct Result {
    Tensor out, lse;
  };
  Result forward(Stream& stream) const;
  void backward(Tape& tape, const Result& result, const Tensor& grad_out) const;

 private:
  Tensor rows(const Tensor& of, std::int64_t sequence, const Piece& piece) const {
    const std::int64_t first = sequence * batch_.length + piece.begin;
    return of.slice(first, first + piece.count);
  }
  AttentionPlaces places(int source, const Step& step, std::int64_t sequence) const;
  void attend(Stream& stream, const Step& step, std::int64_t sequence, const Tensor& kv,
              const Tensor& sum, const Tensor& lse) const;
  struct Gradients {
    Tensor q, kv;  // [tokens, heads * head_dim], [tokens, groups * 2 * head_dim]
  };
  Gradients gradients(Stream& stream, DType dtype) const;
  void differentiate(Stream& stream, const Step& step, std::int64_t sequence, const Tensor& kv,
                     const Result& of, const Tensor& grad_out, const Gradients& grads) const;

  Communicator& ring_;
  Stream* communication_;
  Batch batch_;  // its tensors, which the problems read
  Value qkv_;
  DType sums_;
  AttentionOptions options_;
  const bool by_places_;     // else the pieces' order says what queries see: all, or causally
  std::vector<Step> steps_;  // the first of this rank's own keys, then against the ring
};

RingAttention::RingAttention(Context& context, const Value& qkv, const AttentionOptions& o)
    : ring_(context.mesh.axis(Axis::ring)),
      communication_(context.communication),
      batch_(context.batch),
      qkv_(qkv),
      sums_(accumulation_dtype(qkv.dtype())),
      options_(o),
      by_places_(o.window > 0 || batch_.key_begin ||
                 (context.training && o.dropout.probability > 0)) {
  check_options(kOp, o);
  check(batch_.whole && !o.bias, kOp, ": needs the whole sequences, and knows no relative bias");
  check_rows(kOp, "qkv", qkv, batch_.num_tokens(),
             (options_.num_heads + 2 * options_.num_groups) * options_.head_dim);
  const int ranks = ring_.size();
  for (int behind = 0; behind < ranks; ++behind) {
    const int source = (ring_.rank() + ranks - behind) % ranks;
    Step step = step_of(ring_.rank(), source, batch_.length, o.causal);
    AttentionOptions options = o;
    options.causal = by_places_ ? o.causal : step.causal;
    options.window = options.causal ? o.window : 0;
    for (std::int64_t b = 0; b < batch_.num_sequences; ++b) {
      step.problems.push_back(
          attention_problem(kOp, context, places(source, step, b), options, qkv.dtype()));
    }
    steps_.push_back(std::move(step));
  }
}

AttentionPlaces RingAttention::places(int source, const Step& step, std::int64_t sequence) const {
  AttentionPlaces at{
      .num_sequences = 1, .query_length = step.queries.count, .key_length = step.keys.count};
  if (!by_places_) {
    return at;
  }
  // Of `tensor`, which has something for each token, or for each place of all sequences.
  const auto of = [&](const Tensor& tensor, const Piece& piece) {
    const std::int64_t first = tensor.numel() == batch_.length ? 0 : sequence * batch_.length;
    return tensor ? tensor.range(first + piece.begin, {piece.count}) : Tensor();
  };
  at.samples = batch_.samples.numel() == batch_.num_sequences ? batch_.samples.range(sequence, {1})
                                                              : of(batch_.samples, step.queries);
  at.query_places = of(batch_.places, step.queries);
  at.key_places =
      batch_.whole->places.range(source * batch_.length + step.keys.begin, {step.keys.count});
  at.key_begin = of(batch_.key_begin, step.queries);
  at.key_end = of(batch_.key_end, step.queries);
  return at;
}

// Lets the queries of a sequence see the keys of a step.
void RingAttention::attend(Stream& stream, const Step& step, std::int64_t sequence,
                           const Tensor& kv, const Tensor& sum, const Tensor& lse) const {
  const AttentionProblem& p = step.problems[static_cast<std::size_t>(sequence)];
  const std::int64_t first = sequence * batch_.length;
  const Tensor part =
      Tensor::empty(stream, p.dtype, {p.query_length, options_.num_heads * options_.head_dim});
  const Tensor part_lse = Tensor::empty(stream, sums_, {options_.num_heads, p.query_length});
  const AttentionHeads own = heads_in(qkv_.data, {}, p), theirs = heads_in(qkv_.data, kv, p);
  launch(stream, AttentionForward{.problem = p,
                                  .q = from_token(own.q, p.dtype, first + step.queries.begin),
                                  .k = from_token(theirs.k, p.dtype, first + step.keys.begin),
                                  .v = from_token(theirs.v, p.dtype, first + step.keys.begin),
                                  .out = part,
                                  .lse = part_lse});
  launch(stream, AttentionMerge{.out = part,
                                .lse = part_lse,
                                .sum = rows(sum, sequence, {0, batch_.length}),
                                .sum_lse = lse.slice(sequence, sequence + 1),
                                .num_heads = options_.num_heads,
                                .head_dim = options_.head_dim,
                                .num_queries = p.query_length,
                                .length = batch_.length,
                                .first = step.queries.begin,
                                .start = &step == &steps_.front()});
}

RingAttention::Result RingAttention::forward(Stream& stream) const {
  const Tensor sum =
      Tensor::empty(stream, sums_, {batch_.num_tokens(), options_.num_heads * options_.head_dim});
  const Tensor lse =
      Tensor::empty(stream, sums_, {batch_.num_sequences, options_.num_heads, batch_.length});
  Passing kv(ring_, communication_, keys_and_values(stream, qkv_.data, options_));
  for (const Step& step : steps_) {
    const bool passes = &step != &steps_.back();
    if (passes) {
      kv.start(stream);
    }
    for (std::int64_t b = 0; b < batch_.num_sequences; ++b) {
      attend(stream, step, b, kv.here(), sum, lse);
    }
    if (passes) {
      kv.finish(stream);
    }
  }
  if (sums_ == qkv_.dtype()) {
    return {sum, lse};
  }
  const Tensor out = Tensor::empty(stream, qkv_.dtype(), sum.shape());
  launch(stream, ScaleAdd{.x = sum, .y = out});
  return {out, lse};
}

RingAttention::Gradients RingAttention::gradients(Stream& stream, DType dtype) const {
  const std::int64_t tokens = batch_.num_tokens();
  return {Tensor::empty(stream, dtype, {tokens, options_.num_heads * options_.head_dim}),
          Tensor::empty(stream, dtype, {tokens, options_.num_groups * 2 * options_.head_dim})};
}

// Leaves the gradients of the queries and keys of a step in their rows of `grads`.
void RingAttention::differentiate(Stream& stream, const Step& step, std::int64_t sequence,
                                  const Tensor& kv, const Result& of, const Tensor& grad_out,
                                  const Gradients& grads) const {
  const AttentionProblem& p = step.problems[static_cast<std::size_t>(sequence)];
  const std::int64_t query = sequence * batch_.length + step.queries.begin;
  const std::int64_t key = sequence * batch_.length + step.keys.begin;
  Tensor lse = of.lse.slice(sequence, sequence + 1);
  if (p.query_length < batch_.length) {
    const Tensor some = Tensor::empty(stream, sums_, {options_.num_heads, p.query_length});
    launch(stream, CopyColumns{.x = lse,
                               .y = some,
                               .rows = options_.num_heads,
                               .columns = p.query_length,
                               .x_width = batch_.length,
                               .x_first = step.queries.begin,
                               .y_width = p.query_length});
    lse = some;
  }
  const AttentionHeads own = heads_in(qkv_.data, {}, p), theirs = heads_in(qkv_.data, kv, p);
  const AttentionHeads to = heads_in(grads.q, grads.kv, p);
  launch(stream, AttentionBackward{.problem = p,
                                   .q = from_token(own.q, p.dtype, query),
                                   .k = from_token(theirs.k, p.dtype, key),
                                   .v = from_token(theirs.v, p.dtype, key),
                                   .out = rows(of.out, sequence, step.queries),
                                   .lse = lse,
                                   .grad_out = rows(grad_out, sequence, step.queries),
                                   .grad_q = from_token(to.q, p.dtype, query),
                                   .grad_k = from_token(to.k, p.dtype, key),
                                   .grad_v = from_token(to.v, p.dtype, key)});
}

// The gradients of keys and values pass on with them, behind what each rank adds, until they are at
// home again.
void RingAttention::backward(Tape& tape, const Result& result, const Tensor& grad_out) const {
  Stream& stream = tape.stream();
  const Gradients part = gradients(stream, qkv_.dtype()), sum = gradients(stream, sums_);
  Passing kv(ring_, communication_, keys_and_values(stream, qkv_.data, options_));
  Passing grad_kv(ring_, communication_, sum.kv);
  for (const Step& step : steps_) {
    const bool first = &step == &steps_.front(), last = &step == &steps_.back();
    const auto add = [&](const Tensor& from, const Tensor& to, const Piece& piece) {
      for (std::int64_t b = 0; b < batch_.num_sequences; ++b) {
        launch(stream, ScaleAdd{.x = rows(from, b, piece), .y = rows(to, b, piece), .add = !first});
      }
    };
    if (!last) {
      kv.start(stream);
    }
    for (std::int64_t b = 0; b < batch_.num_sequences; ++b) {
      differentiate(stream, step, b, kv.here(), result, grad_out, part);
    }
    add(part.q, sum.q, step.queries);
    if (!first) {
      grad_kv.finish(stream);
    }
    add(part.kv, grad_kv.here(), step.keys);
    grad_kv.start(stream);
    if (!last) {
      kv.finish(stream);
    }
  }
  grad_kv.finish(stream);
  write_qkv_gradient(tape, qkv_.slot, sum.q, grad_kv.here(), options_);
}

}  // namespace

Value ring_attention(Context& context, const Value& qkv, const AttentionOptions& options) {
  const OpScope scope(context.stream, kOp);
  const auto call = std::make_shared<const RingAttention>(context, qkv, options);
  const RingAttention::Result result = call->forward(context.stream);
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
