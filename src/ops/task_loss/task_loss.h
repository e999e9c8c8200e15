// Losses of a model that is tuned for a task: against the right class of each sample, or its
// number. Both are means over all samples of the batch, each times its weight
// (Batch::sample_weights), and are computed in the accumulation dtype of what they are given.
// Gradients are made in the forward pass, so that neither may stand in a recomputed segment.
#pragma once

#include "autograd/context.h"
#include "device/launch.h"

namespace bloomery {

struct TaskLoss {
  Tensor loss;     // [1]
  Tensor outputs;  // [samples, columns]: x, in the accumulation dtype
};

// Softmax cross-entropy of the batch's classes. Row-major x is [samples, columns], whatever its
// shape: one column for each class.
TaskLoss class_loss(Context& context, const Value& x);

// (x - score)^2 of the batch's scores; x has one number for each sample.
TaskLoss squared_loss(Context& context, const Value& x);

// losses[i] = (x[i] - scores[i])^2; gradient[i] = 2 (x[i] - scores[i]) weight inverse grad_scale.
struct SquaredErrors {
  ConstView x;           // [samples], fp32 (or fp64 on the CPU)
  ConstView scores;      // fp32 [samples]
  ConstView weights;     // fp32 [samples], or null: all ones
  ConstView inverse;     // [1], of x's dtype
  ConstView grad_scale;  // fp32 [1], or null: one
  View losses, gradient;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const SquaredErrors&);
void run(OnCuda, Stream&, const SquaredErrors&);

}  // namespace bloomery
