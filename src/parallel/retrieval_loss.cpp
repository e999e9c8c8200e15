#include "parallel/retrieval_loss.h"

#include "comm/mesh.h"
#include "ops/arithmetic/arithmetic.h"
#include "ops/loss/loss.h"
#include "ops/matmul/matmul.h"
#include "ops/retrieval/retrieval.h"

namespace bloomery {
namespace {

Tensor converted(Stream& stream, const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) {
    return x;
  }
  Tensor y = Tensor::empty(stream, dtype, x.shape());
  launch(stream, ScaleAdd{.x = x, .y = y});
  return y;
}

// The rows of all ranks, in the accumulation dtype.
Tensor gathered(Stream& stream, Communicator& ranks, const Tensor& x) {
  Tensor all = x;
  if (ranks.size() > 1) {
    all = Tensor::empty(stream, x.dtype(), {ranks.size() * x.shape()[0], x.shape()[1]});
    ranks.all_gather(x, all, stream);
  }
  return converted(stream, all, accumulation_dtype(x.dtype()));
}

Tensor mean_of(Stream& stream, const Tensor& losses) {
  const Tensor inverse = Tensor::empty(stream, losses.dtype(), {1});
  Tensor mean = Tensor::empty(stream, losses.dtype(), {1});
  launch(stream, LossMaskSum{.num_tokens = losses.numel(), .inverse = inverse});
  launch(stream, LossMean{.losses = losses, .inverse = inverse, .loss = mean});
  return mean;
}

void hand_over(Tape& tape, const Slot& slot, const Tensor& grad) {
  if (slot != nullptr && !slot->grad) {
    tape.set_grad(slot, grad);
  } else if (slot != nullptr) {
    write_grad(tape.stream(), grad, tape.sink(slot));
  }
}

// Of the rows held here: the products of grad_scores with what the others have of the other side.
void record_gradients(Context& context, const Value& queries, const Value& contexts,
                      const Tensor& grad_scores, const Tensor& all_queries,
                      const Tensor& all_contexts, int rank) {
  Stream& stream = context.stream;
  const std::int64_t rows = queries.shape()[0], first = rank * rows;
  const Tensor grad_queries = Tensor::empty(stream, all_queries.dtype(), queries.shape());
  launch(stream,
         Matmul{.a = grad_scores.slice(first, first + rows), .b = all_contexts, .d = grad_queries});
  const Tensor grad_contexts = Tensor::empty(stream, all_contexts.dtype(), all_contexts.shape());
  launch(stream,
         Matmul{.a = grad_scores, .b = all_queries, .d = grad_contexts, .transpose_a = true});
  const Tensor of_queries = converted(stream, grad_queries, queries.dtype());
  const Tensor of_contexts =
      converted(stream, grad_contexts.slice(first, first + rows), contexts.dtype());
  context.tape->record(
      {.op = "retrieval_loss",
       .input_gradient =
           [q = queries.slot, c = contexts.slot, of_queries, of_contexts](Tape& tape) {
             hand_over(tape, q, of_queries);
             hand_over(tape, c, of_contexts);
           },
       .saved = {of_queries, of_contexts},
       .shape = {1}});
}

}  // namespace

RetrievalLoss retrieval_loss(Context& context, const Value& queries, const Value& contexts,
                             double scale, std::span<const std::int64_t> topk) {
  const OpScope scope(context.stream, "retrieval_loss");
  check(!context.recomputing,
        "retrieval_loss: computes its gradients in the forward pass and cannot be recomputed; "
        "leave it out of the segment");
  check(queries.shape().rank() == 2 && queries.shape() == contexts.shape() &&
            queries.dtype() == contexts.dtype(),
        "retrieval_loss: queries ", queries.dtype(), queries.shape(), " and contexts ",
        contexts.dtype(), contexts.shape(), " must have one shape [sequences, width] and dtype");
  Stream& stream = context.stream;
  Communicator& ranks = context.mesh.axis(Axis::data);
  const Tensor all_queries = gathered(stream, ranks, queries.data);
  const Tensor all_contexts = gathered(stream, ranks, contexts.data);
  const std::int64_t rows = all_queries.shape()[0];
  const Tensor scores = Tensor::empty(stream, all_queries.dtype(), {rows, rows});
  launch(stream, Matmul{.a = all_queries, .b = all_contexts, .d = scores, .transpose_b = true});
  const Tensor losses = Tensor::empty(stream, scores.dtype(), {rows});
  const Tensor places = Tensor::empty(stream, DType::int32, {rows});
  launch(stream, RetrievalRows{.scores = scores,
                               .scale = static_cast<float>(scale),
                               .losses = losses,
                               .ranks = places,
                               .gradient = context.tape != nullptr,
                               .factor = static_cast<float>(ranks.size()),
                               .grad_scale = context.batch.grad_scale});
  RetrievalLoss result{.loss = mean_of(stream, losses)};
  for (const std::int64_t most : topk) {
    result.accuracies.push_back(Tensor::empty(stream, scores.dtype(), {1}));
    launch(stream,
           RetrievalShare{.ranks = places, .most = most, .share = result.accuracies.back()});
  }
  if (context.tape != nullptr) {
    record_gradients(context, queries, contexts, scores, all_queries, all_contexts, ranks.rank());
  }
  return result;
}

}  // namespace bloomery
