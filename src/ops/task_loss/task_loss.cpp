#include "ops/task_loss/task_loss.h"

#include "device/op_clock.h"
#include "ops/arithmetic/arithmetic.h"
#include "ops/loss/loss.h"

namespace bloomery {
namespace {

Tensor converted(Stream& stream, const Tensor& x, DType dtype) {
  Tensor y = Tensor::empty(stream, dtype, x.shape());
  launch(stream, ScaleAdd{.x = x, .y = y});
  return y;
}

// What both losses need besides their own kernel.
struct Samples {
  Tensor outputs;  // [samples, columns]
  Tensor inverse;  // 1 / samples
  Tensor losses;   // [samples]
};

Samples prepare(Context& context, const char* op, const Value& x, const Tensor& truth,
                DType truth_dtype) {
  const Batch& batch = context.batch;
  check(!context.recomputing, op,
        ": computes its gradients in the forward pass and cannot be recomputed; leave it out of "
        "the segment");
  check(truth && truth.dtype() == truth_dtype && truth.numel() > 0 &&
            x.data.numel() % truth.numel() == 0,
        op, ": x has ", x.data.numel(), " numbers, which ", truth ? truth.numel() : 0,
        " samples of dtype ", truth_dtype, " cannot share equally");
  check(!batch.sample_weights || (batch.sample_weights.dtype() == DType::fp32 &&
                                  batch.sample_weights.numel() == truth.numel()),
        op, ": there must be an fp32 weight for each of ", truth.numel(), " samples");
  Stream& stream = context.stream;
  const DType dtype = accumulation_dtype(x.dtype());
  const std::int64_t samples = truth.numel();
  Samples all{
      .outputs = converted(stream, x.data, dtype).reshape({samples, x.data.numel() / samples}),
      .inverse = Tensor::empty(stream, dtype, {1}),
      .losses = Tensor::empty(stream, dtype, {samples})};
  launch(stream, LossMaskSum{.num_tokens = samples, .inverse = all.inverse});
  return all;
}

TaskLoss finish(Context& context, const char* op, const Value& x, const Samples& all,
                const Tensor& gradient) {
  Stream& stream = context.stream;
  TaskLoss result{.loss = Tensor::empty(stream, all.losses.dtype(), {1}), .outputs = all.outputs};
  launch(stream, LossMean{.losses = all.losses,
                          .mask = context.batch.sample_weights,
                          .inverse = all.inverse,
                          .loss = result.loss});
  if (context.tape != nullptr) {
    const Tensor grad_x = converted(stream, gradient.reshape(x.shape()), x.dtype());
    context.tape->record({.op = op,
                          .input_gradient =
                              [x = x.slot, grad_x](Tape& tape) {
                                if (x != nullptr && !x->grad) {
                                  tape.set_grad(x, grad_x);
                                } else if (x != nullptr) {
                                  write_grad(tape.stream(), grad_x, tape.sink(x));
                                }
                              },
                          .saved = {grad_x},
                          .shape = {1}});
  }
  return result;
}

}  // namespace

TaskLoss class_loss(Context& context, const Value& x) {
  const OpScope scope(context.stream, "class_loss");
  const Batch& batch = context.batch;
  const Samples all = prepare(context, "class_loss", x, batch.classes, DType::int32);
  const Tensor gradient = converted(context.stream, all.outputs, all.outputs.dtype());
  const std::int64_t columns = gradient.shape()[1];
  launch(context.stream, LossAndGradient{.logits = gradient,
                                         .labels = batch.classes,
                                         .columns = {.num_valid = columns},
                                         .mask = batch.sample_weights,
                                         .inverse = all.inverse,
                                         .grad_scale = batch.grad_scale,
                                         .vocabulary = columns,
                                         .losses = all.losses});
  return finish(context, "class_loss", x, all, gradient);
}

TaskLoss squared_loss(Context& context, const Value& x) {
  const OpScope scope(context.stream, "squared_loss");
  const Batch& batch = context.batch;
  const Samples all = prepare(context, "squared_loss", x, batch.scores, DType::fp32);
  check(all.outputs.shape()[1] == 1, "squared_loss: x is ", x.shape(), ", but there are ",
        batch.scores.numel(), " scores");
  const Tensor gradient = Tensor::empty(context.stream, all.outputs.dtype(), all.outputs.shape());
  launch(context.stream, SquaredErrors{.x = all.outputs,
                                       .scores = batch.scores,
                                       .weights = batch.sample_weights,
                                       .inverse = all.inverse,
                                       .grad_scale = batch.grad_scale,
                                       .losses = all.losses,
                                       .gradient = gradient});
  return finish(context, "squared_loss", x, all, gradient);
}

}  // namespace bloomery
