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

// The same of a number for each row; null stays null.
Tensor gathered_numbers(Stream& stream, Communicator& ranks, const Tensor& x) {
  if (!x || ranks.size() == 1) {
    return x;
  }
  Tensor all = Tensor::empty(stream, x.dtype(), {ranks.size() * x.numel()});
  ranks.all_gather(x, all, stream);
  return all;
}

// What the queries and contexts of one matrix of scores find.
struct Scored {
  Tensor scores, losses, ranks, counted;
};

Scored score(Stream& stream, const Tensor& queries, const Tensor& contexts, RetrievalRows work) {
  const std::int64_t rows = queries.shape()[0];
  const DType dtype = queries.dtype();
  Scored result{.scores = Tensor::empty(stream, dtype, {rows, contexts.shape()[0]}),
                .losses = Tensor::empty(stream, dtype, {rows}),
                .ranks = Tensor::empty(stream, DType::int32, {rows}),
                .counted = Tensor::empty(stream, DType::fp32, {rows})};
  launch(stream, Matmul{.a = queries, .b = contexts, .d = result.scores, .transpose_b = true});
  work.scores = result.scores;
  work.losses = result.losses;
  work.ranks = result.ranks;
  work.counted = result.counted;
  launch(stream, work);
  return result;
}

Tensor mean_of(Stream& stream, const Tensor& losses, const Tensor& counted) {
  const Tensor inverse = Tensor::empty(stream, losses.dtype(), {1});
  Tensor mean = Tensor::empty(stream, losses.dtype(), {1});
  launch(stream, LossMaskSum{.mask = counted, .num_tokens = losses.numel(), .inverse = inverse});
  launch(stream, LossMean{.losses = losses, .inverse = inverse, .loss = mean});
  return mean;
}

void check_shapes(const Value& queries, const Value& contexts, const Tensor& present) {
  const Shape &q = queries.shape(), &c = contexts.shape();
  check(q.rank() == 2 && c.rank() == 2 && q[1] == c[1] && q[0] > 0 && c[0] > 0 &&
            c[0] % q[0] == 0 && queries.dtype() == contexts.dtype(),
        "retrieval_loss: queries ", queries.dtype(), q, " and contexts ", contexts.dtype(), c,
        " must have one dtype and shapes [sequences, width], with as many contexts for each query");
  check(!present || present.numel() == c[0], "retrieval_loss: of ", c[0], " contexts ",
        present ? present.numel() : 0, " are present or not");
}

void hand_over(Tape& tape, const Slot& slot, const Tensor& grad) {
  if (slot != nullptr && !slot->grad) {
    tape.set_grad(slot, grad);
  } else if (slot != nullptr) {
    write_grad(tape.stream(), grad, tape.sink(slot));
  }
}

Tensor own_rows(const Tensor& all, std::int64_t each, int rank) {
  return all.slice(rank * each, (rank + 1) * each);
}

// Of the rows held here: the products of grad_scores with what the others have of the other side.
void record_gradients(Context& context, const Value& queries, const Value& contexts,
                      const Tensor& grad_scores, const Tensor& all_queries,
                      const Tensor& all_contexts, int rank) {
  Stream& stream = context.stream;
  const Tensor grad_queries = Tensor::empty(stream, all_queries.dtype(), queries.shape());
  launch(stream, Matmul{.a = own_rows(grad_scores, queries.shape()[0], rank),
                        .b = all_contexts,
                        .d = grad_queries});
  const Tensor grad_contexts = Tensor::empty(stream, all_contexts.dtype(), all_contexts.shape());
  launch(stream,
         Matmul{.a = grad_scores, .b = all_queries, .d = grad_contexts, .transpose_a = true});
  const Tensor of_queries = converted(stream, grad_queries, queries.dtype());
  const Tensor of_contexts =
      converted(stream, own_rows(grad_contexts, contexts.shape()[0], rank), contexts.dtype());
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
                             const Tensor& present, double scale) {
  const OpScope scope(context.stream, "retrieval_loss");
  check(!context.recomputing,
        "retrieval_loss: computes its gradients in the forward pass and cannot be recomputed; "
        "leave it out of the segment");
  check_shapes(queries, contexts, present);
  Stream& stream = context.stream;
  Communicator& ranks = context.mesh.axis(Axis::data);
  const Tensor all_queries = gathered(stream, ranks, queries.data);
  const Tensor all_contexts = gathered(stream, ranks, contexts.data);
  const Tensor all_present = gathered_numbers(stream, ranks, present);
  const Scored found = score(stream, all_queries, all_contexts,
                             {.scale = static_cast<float>(scale),
                              .present = all_present,
                              .gradient = context.tape != nullptr,
                              .factor = static_cast<float>(ranks.size()),
                              .grad_scale = context.batch.grad_scale});
  if (context.tape != nullptr) {
    record_gradients(context, queries, contexts, found.scores, all_queries, all_contexts,
                     ranks.rank());
  }
  return {.loss = mean_of(stream, found.losses, found.counted), .ranks = found.ranks};
}

Tensor retrieval_ranks(Context& context, const Value& queries, const Value& contexts,
                       const Tensor& present) {
  const OpScope scope(context.stream, "retrieval_ranks");
  check_shapes(queries, contexts, present);
  Stream& stream = context.stream;
  const DType dtype = accumulation_dtype(queries.dtype());
  return score(stream, converted(stream, queries.data, dtype),
               converted(stream, contexts.data, dtype), {.present = present})
      .ranks;
}

Tensor found_among(Stream& stream, const Tensor& ranks, std::int64_t most, FoundAs as,
                   DType dtype) {
  Tensor found = Tensor::empty(stream, dtype, {1});
  launch(stream, RetrievalShare{
                     .ranks = ranks, .most = most, .count = as == FoundAs::number, .share = found});
  return found;
}

}  // namespace bloomery
