#include "nn/chunked_layer.h"

#include "autograd/features.h"
#include "autograd/inputs_on_host.h"
#include "device/op_clock.h"
#include "nn/block.h"
#include "ops/arithmetic/arithmetic.h"
#include "parallel/sequence_chunks.h"

namespace bloomery {
namespace {

constexpr const char* kOp = "layer_in_chunks";

class ChunkedPass {
 public:
  ChunkedPass(const Context& context, const ChunkedLayer& layer);

  void forward(const Tensor& input, const Tensor& output) const;
  // Of `grad`, which becomes the gradient of the input.
  void backward(Tape& tape, const Tensor& input, const Tensor& grad) const;

 private:
  struct Chunk {
    Piece rows;  // of the batch's tokens
    Batch batch;
  };
  using Chunks = std::vector<Chunk>;  // of one sequence

  Tensor rows(const Tensor& of, const Chunk& chunk) const {
    return of.slice(chunk.rows.begin, chunk.rows.begin + chunk.rows.count);
  }
  Context context_of(const Chunk& chunk, Tape* tape) const;
  Value queries_and_keys(Context& context, State& state) const;
  State run(Context& context, State state, KeysOfChunks& keys, std::int64_t chunk) const;
  KeysOfChunks keys_of(const Chunks& chunks) const;
  void keep_keys(const Chunks& chunks, const Tensor& input, KeysOfChunks& keys) const;
  void differentiate(Tape& tape, const Chunks& chunks, std::int64_t number, KeysOfChunks& keys,
                     const Tensor& input, const Tensor& grad, bool last) const;

  Context context_;
  std::int64_t length_;  // of whole sequences
  ChunkedLayer layer_;
  std::vector<Chunks> sequences_;
};

ChunkedPass::ChunkedPass(const Context& context, const ChunkedLayer& layer)
    : context_(context), length_(context.batch.whole_length()), layer_(layer) {
  check(!context.mesh.divides_tokens() && context.mesh.degree(Axis::ring) == 1, kOp,
        ": sequence parallelism of tensor ranks and rings have tokens in another order");
  const Batch& batch = context.batch;
  const std::int64_t ranks = length_ / batch.length;
  const std::int64_t count = context.features.sequence_chunks->length / ranks;
  for (std::int64_t sequence = 0; sequence < batch.num_sequences; ++sequence) {
    Chunks& chunks = sequences_.emplace_back();
    for (const Piece& piece : chunk_pieces(batch.length, count, 0, 1)) {
      chunks.push_back(
          {{sequence * batch.length + piece.begin, piece.count}, piece_of(batch, sequence, piece)});
    }
  }
}

Context ChunkedPass::context_of(const Chunk& chunk, Tape* tape) const {
  Context of = context_.with_batch(chunk.batch);
  of.tape = tape;
  return of;
}

KeysOfChunks ChunkedPass::keys_of(const Chunks& chunks) const {
  std::vector<std::int64_t> ends;
  for (const Chunk& chunk : chunks) {
    ends.push_back((ends.empty() ? 0 : ends.back()) + chunk.batch.whole_length());
  }
  return {context_.stream, context_.features.sequence_chunks->offload_pool.get(), std::move(ends)};
}

Value ChunkedPass::queries_and_keys(Context& context, State& state) const {
  const LinearInput x = layer_.before(context, state);
  return layer_.attention.queries_and_keys(context, x, length_);
}

State ChunkedPass::run(Context& context, State state, KeysOfChunks& keys,
                       std::int64_t chunk) const {
  const Value qkv = queries_and_keys(context, state);
  Value branch = layer_.attention.of_chunk(context, qkv, keys, chunk);
  return add_pending(context, layer_.after(context, std::move(state), std::move(branch)));
}

void ChunkedPass::forward(const Tensor& input, const Tensor& output) const {
  for (const Chunks& chunks : sequences_) {
    KeysOfChunks keys = keys_of(chunks);
    for (std::size_t i = 0; i < chunks.size(); ++i) {
      Context context = context_of(chunks[i], nullptr);
      const State state = run(context, {.stream = {rows(input, chunks[i]), nullptr}}, keys,
                              static_cast<std::int64_t>(i));
      const Tensor to = rows(output, chunks[i]);
      context.stream.copy(to.data(), state.stream.data.data(), to.bytes());
    }
  }
}

// Of all chunks but the last, which no other chunk sees.
void ChunkedPass::keep_keys(const Chunks& chunks, const Tensor& input, KeysOfChunks& keys) const {
  for (std::size_t i = 0; i + 1 < chunks.size(); ++i) {
    Context context = context_of(chunks[i], nullptr);
    context.recomputing = true;
    State state{.stream = {rows(input, chunks[i]), nullptr}};
    layer_.attention.keep_keys_of(context, queries_and_keys(context, state), keys,
                                  static_cast<std::int64_t>(i));
  }
}

void ChunkedPass::differentiate(Tape& tape, const Chunks& chunks, std::int64_t number,
                                KeysOfChunks& keys, const Tensor& input, const Tensor& grad,
                                bool last) const {
  const Chunk& chunk = chunks[static_cast<std::size_t>(number)];
  Tape inner(tape.stream());
  Context context = context_of(chunk, &inner);
  context.recomputing = true;
  const Value x = inner.value(rows(input, chunk));
  const State state = [&] {
    const OpScope phase(tape.stream(), OpKind::recompute);
    return run(context, {.stream = x}, keys, number);
  }();
  const Tensor here = rows(grad, chunk);
  inner.set_grad(state.stream.slot, here);
  tape.run_part(inner, last);
  if (x.slot->grad.data() != here.data()) {
    tape.stream().copy(here.data(), x.slot->grad.data(), here.bytes());
  }
}

void ChunkedPass::backward(Tape& tape, const Tensor& input, const Tensor& grad) const {
  for (auto chunks = sequences_.rbegin(); chunks != sequences_.rend(); ++chunks) {
    KeysOfChunks keys = keys_of(*chunks);
    {
      const OpScope phase(tape.stream(), OpKind::recompute);
      keep_keys(*chunks, input, keys);
    }
    for (std::int64_t number = std::ssize(*chunks) - 1; number >= 0; --number) {
      const bool last = number == 0 && chunks + 1 == sequences_.rend();
      differentiate(tape, *chunks, number, keys, input, grad, last);
    }
  }
}

// Gradients are written over those of the output, a chunk at a time.
void backward(Tape& tape, const ChunkedPass& pass, const Tensor& input, const Slot& x,
              const Slot& y) {
  Tensor grad = tape.grad(y);
  if (!tape.exclusive(y)) {
    const Tensor shared = grad;
    grad = Tensor::empty(tape.stream(), shared.dtype(), shared.shape());
    tape.stream().copy(grad.data(), shared.data(), shared.bytes());
  }
  pass.backward(tape, input, grad);
  if (x == nullptr) {
    return;
  }
  if (x->grad) {
    write_grad(tape.stream(), grad, tape.sink(x));
  } else {
    tape.set_grad(x, std::move(grad));
  }
}

}  // namespace

State in_chunks(Context& context, State state, const ChunkedLayer& layer) {
  state = add_pending(context, std::move(state));
  const auto pass = std::make_shared<const ChunkedPass>(context, layer);
  const Value x = state.stream;
  const Value y = context.output(x.dtype(), x.shape());
  pass->forward(x.data, y.data);
  if (context.tape != nullptr) {
    const KeptInput kept(context, x.data);
    context.tape->record({.op = kOp,
                          .input_gradient =
                              [pass, kept, x = x.slot, y = y.slot](Tape& tape) {
                                if (tape.grad(y)) {
                                  backward(tape, *pass, kept.take(), x, y);
                                }
                              },
                          .saved = {kept.on_device()},
                          .shape = y.shape()});
  }
  state.stream = y;
  return state;
}

}  // namespace bloomery
