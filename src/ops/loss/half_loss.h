// Softmax cross-entropy of fp16 logits in fp16, as Megatron computes it with
// --fp16-lm-cross-entropy: with r(x) for rounding to fp16 and m for the maximum of a row,
//
//   e[c] = r(exp(r(x[c] - m))),   s = r(sum of e),   loss = r(r(log(s)) - r(x[label] - m)),
//   gradient[c] = r(r(r(e[c] / s) - [c is the label]) r(w)).
//
// Sums are made in fp32 and rounded once. The kernels stand beside those of loss.h, whose
// LossStatistics gives the maxima; statistics and losses are fp32 numbers as there.
#pragma once

#include "ops/loss/loss.h"

namespace bloomery {

// The sum of e over the columns held here, not rounded yet: it may be summed over ranks.
struct HalfLossSum {
  ConstView logits;  // fp16 [rows, columns]
  LossColumns columns;
  ConstView max;  // [rows], over all ranks
  View sum;       // [rows]
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const HalfLossSum&);
void run(OnCuda, Stream&, const HalfLossSum&);

// Like LossTokens.
struct HalfLossTokens {
  LossTokens tokens;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const HalfLossTokens&);
void run(OnCuda, Stream&, const HalfLossTokens&);

// Like LossGradient.
struct HalfLossGradient {
  LossGradient gradient;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const HalfLossGradient&);
void run(OnCuda, Stream&, const HalfLossGradient&);

}  // namespace bloomery
