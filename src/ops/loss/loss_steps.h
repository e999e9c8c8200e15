// Loss and gradient by the kernels that also serve several ranks, one pass over the logits each.
#pragma once

#include "ops/loss/loss.h"

namespace bloomery {

template <class On>
void loss_and_gradient_in_steps(On on, Stream& stream, const LossAndGradient& k) {
  const Tensor statistics =
      Tensor::empty(stream, accumulation_dtype(k.logits.dtype), {4, k.logits.rows()});
  const Tensor max = statistics.slice(1, 2), sum = statistics.slice(2, 3);
  const Tensor target = statistics.slice(3, 4);
  run(on, stream,
      LossStatistics{.logits = k.logits,
                     .labels = k.labels,
                     .columns = k.columns,
                     .local_max = statistics.slice(0, 1),
                     .max = max,
                     .sum = sum,
                     .target = target});
  run(on, stream,
      LossTokens{.max = max,
                 .sum = sum,
                 .target = target,
                 .labels = k.labels,
                 .mask = k.mask,
                 .vocabulary = k.vocabulary,
                 .losses = k.losses});
  run(on, stream,
      LossGradient{.logits = k.logits,
                   .labels = k.labels,
                   .columns = k.columns,
                   .max = max,
                   .sum = sum,
                   .mask = k.mask,
                   .inverse = k.inverse,
                   .grad_scale = k.grad_scale});
}

}  // namespace bloomery
