#include "ops/arithmetic/arithmetic.h"
#include "ops/attention/attention_backends.h"
#include "ops/attention/attention_call.h"
#include "ops/attention/attention_settings.h"

namespace bloomery {
namespace {

// Of scores, or of values weighted by them.
double product_flops(const AttentionProblem& p) {
  return 2.0 * static_cast<double>(p.num_sequences * p.num_heads * p.head_dim) *
         static_cast<double>(p.query_length) * static_cast<double>(p.key_length);
}

struct Result {
  Value out;
  Tensor lse;
};

Result run_forward(Context& context, const AttentionProblem& p, const AttentionHeads& heads) {
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

// What the kernel that a GPU would run takes for itself, so that a plan of memory has it. Null
// elsewhere.
Tensor planned_scratch(Stream& stream, const AttentionProblem& p) {
  Device& device = stream.device();
  const std::int64_t bytes = attention_cuda::cudnn_backward_bytes(p);
  const bool planned = stream.abstract() && device.rules() == DeviceKind::cuda &&
                       attention_cuda::cudnn_applies_backward(p) &&
                       bytes <= device.service<AttentionSettings>().max_workspace_bytes;
  return planned ? Tensor::empty(stream, DType::uint8, {bytes}) : Tensor();
}

// What backward keeps of the bias of a call.
struct BiasRecord {
  RelativeBias bias;
  Tensor by_distance, grad;  // the second from the input gradient to the weight gradient
};

void backward(Tape& tape, const AttentionProblem& p, const Value& q, const Value& kv,
              const Tensor& out, const Tensor& lse, const Tensor& grad_out, BiasRecord& bias) {
  const Overwritable grad_q(tape, q.slot, q.data), grad_kv(tape, kv.slot, kv.data);
  const AttentionHeads heads = heads_in(q.data, kv.data, p);
  const AttentionHeads grads = heads_in(grad_q.buffer(), grad_kv.buffer(), p);
  if (bias.bias && !bias.bias.table->frozen) {
    bias.grad = Tensor::empty(tape.stream(), bias.by_distance.dtype(), bias.by_distance.shape());
  }
  const Tensor planned = planned_scratch(tape.stream(), p);
  launch(tape.stream(), AttentionBackward{.problem = p,
                                          .q = heads.q,
                                          .k = heads.k,
                                          .v = heads.v,
                                          .out = out,
                                          .lse = lse,
                                          .grad_out = grad_out,
                                          .grad_q = grads.q,
                                          .grad_k = grads.k,
                                          .grad_v = grads.v,
                                          .grad_bias = bias.grad});
  grad_q.finish();
  grad_kv.finish();
}

// The op, of checked inputs. `at` is kept until backward, which reads its tensors.
Value attend(Context& context, const char* op, const Value& q, const Value& kv,
             const AttentionPlaces& at, AttentionProblem p, const RelativeBias& bias) {
  const auto record = std::make_shared<BiasRecord>(
      bias, bias_by_distance(context.stream, op, bias, p.num_heads, p.causal, p.scale));
  p.bias = record->by_distance.data();
  p.bias_reach = bias.max_distance;
  const auto [y, lse] = run_forward(context, p, heads_in(q.data, kv.data, p));
  if (context.tape != nullptr) {
    Entry entry{
        .op = op,
        .input_gradient =
            [p, at, q, kv, out = y.data, lse = lse, y = y.slot, record](Tape& tape) {
              if (tape.grad(y) && (q.slot != nullptr || kv.slot != nullptr || record->bias)) {
                backward(tape, p, q, kv, out, lse, tape.grad(y), *record);
              }
            },
        .saved = {q.data, kv.data, y.data, lse, record->by_distance},
        .shape = y.shape()};
    if (bias) {
      entry.parameters = {bias.table};
      entry.weight_gradient = [record, causal = p.causal, scale = p.scale](Tape& tape) {
        bias_gradient(tape, record->bias, causal, scale, record->grad);
        record->grad = {};
      };
    }
    context.tape->record(std::move(entry));
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
  const AttentionProblem p = attention_problem(kOp, context, places, options, qkv.dtype());
  check_rows(kOp, "qkv", qkv, p.num_sequences * p.query_length,
             p.num_groups * (p.heads_per_group() + 2) * p.head_dim);
  return attend(context, kOp, qkv, {}, places, p, options.bias);
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
  const AttentionProblem p = attention_problem(kOp, context, places, options, q.dtype());
  check_rows(kOp, "q", q, p.num_sequences * p.query_length, p.num_heads * p.head_dim);
  check_rows(kOp, "kv", kv, p.num_sequences * p.key_length, p.num_groups * 2 * p.head_dim);
  return attend(context, kOp, q, kv, places, p, options.bias);
}

}  // namespace bloomery
