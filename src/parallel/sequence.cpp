#include "parallel/sequence.h"

#include "ops/arithmetic/arithmetic.h"

namespace bloomery {
namespace {

Shape with_rows(const Shape& shape, std::int64_t rows) {
  Shape result = shape;
  result[0] = rows;
  return result;
}

}  // namespace

TokenRange local_tokens(const Mesh& mesh, const Batch& batch) {
  if (!mesh.divides_tokens()) {
    return {};
  }
  const int ranks = mesh.degree(Axis::tensor);
  check(batch.num_tokens() % ranks == 0, "sequence parallelism: ", batch.num_tokens(),
        " tokens of a micro-batch cannot be divided among ", ranks, " tensor-parallel ranks");
  const std::int64_t count = batch.num_tokens() / ranks;
  return {count * mesh.coordinate(Axis::tensor), count};
}

std::int64_t num_local_tokens(const Mesh& mesh, const Batch& batch) {
  const TokenRange held = local_tokens(mesh, batch);
  return held.count == TokenRange::kRest ? batch.num_tokens() : held.count;
}

Value sum_to_local_tokens(Context& context, Value parts) {
  Communicator& ranks = context.mesh.axis(Axis::tensor);
  if (!context.mesh.divides_tokens()) {
    ranks.all_reduce(parts.data, Reduce::sum, context.stream);
    return parts;  // the gradient of the sum is that of each part
  }
  Value sum =
      context.output(parts.dtype(), with_rows(parts.shape(), parts.shape()[0] / ranks.size()));
  ranks.reduce_scatter(parts.data, sum.data, Reduce::sum, context.stream);
  if (context.tape != nullptr) {
    context.tape->record({.op = "gather_gradient",
                          .input_gradient =
                              [&ranks, parts = parts.slot, sum = sum.slot](Tape& tape) {
                                Tensor whole =
                                    Tensor::empty(tape.stream(), parts->dtype, parts->shape);
                                ranks.all_gather(tape.grad(sum), whole, tape.stream());
                                tape.set_grad(parts, std::move(whole));
                              },
                          .shape = sum.shape()});
  }
  return sum;
}

Value gather_tokens(Context& context, const Value& held) {
  if (!context.mesh.divides_tokens()) {
    return held;
  }
  Communicator& ranks = context.mesh.axis(Axis::tensor);
  Value all = context.output(held.dtype(), with_rows(held.shape(), held.shape()[0] * ranks.size()));
  ranks.all_gather(held.data, all.data, context.stream);
  if (context.tape != nullptr && held.wants_grad()) {
    context.tape->record(
        {.op = "sum_gradient",
         .input_gradient =
             [&ranks, held = held.slot, all = all.slot](Tape& tape) {
               const Tensor sum = Tensor::empty(tape.stream(), held->dtype, held->shape);
               ranks.reduce_scatter(tape.grad(all), sum, Reduce::sum, tape.stream());
               if (held->grad) {
                 write_grad(tape.stream(), sum, tape.sink(held));
               } else {
                 tape.set_grad(held, sum);
               }
             },
         .shape = all.shape()});
  }
  return all;
}

}  // namespace bloomery
