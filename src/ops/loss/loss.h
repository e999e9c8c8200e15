// The kernels of softmax cross-entropy over columns that may be split between ranks. The op that
// uses them, chunk by chunk and together with the output projection, is parallel/head_loss.
//
// Per row: max and sum of exponentials of the columns held here, combined over the ranks, give
//   loss = log(sum) + max - target,    gradient[c] = w (exp(x[c] - max) / sum - [c is the target])
// with w = mask / sum(mask) * grad_scale. Statistics are in the accumulation dtype of the logits.
#pragma once

#include "device/launch.h"
#include "tensor/tensor.h"

namespace bloomery {

// Which tokens the columns of a logits matrix stand for: column c is token first_token + c. Columns
// from num_valid on are padding and take no part.
struct LossColumns {
  std::int64_t first_token = 0;
  std::int64_t num_valid = 0;

  // The column of a token, or -1 when it is not here.
  constexpr std::int64_t of(std::int64_t token) const {
    const std::int64_t column = token - first_token;
    return column >= 0 && column < num_valid ? column : -1;
  }
};

// sum[0] = sum(mask), fp32; inverse[0] = 1 / sum(mask), or 0 when the mask is all zeros, in the
// accumulation dtype. Either may be null. A null mask is all ones.
struct LossMaskSum {
  ConstView mask;  // fp32 [num_tokens]
  std::int64_t num_tokens = 0;
  View inverse, sum;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const LossMaskSum&);
void run(OnCuda, Stream&, const LossMaskSum&);

// Of each row of logits: its maximum (-inf without valid columns), the sum of exp(x - maximum), and
// the logit of the label, 0 when the label is not among these columns. The maximum is written
// twice, because one copy becomes the maximum over all ranks.
struct LossStatistics {
  ConstView logits;  // [rows, columns]
  ConstView labels;  // int32 [rows]
  LossColumns columns;
  View local_max, max;  // [rows]
  View sum, target;     // [rows]
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const LossStatistics&);
void run(OnCuda, Stream&, const LossStatistics&);

// sum *= exp(local_max - max): refers the local sum to the maximum over all ranks.
struct LossRescale {
  ConstView local_max, max;
  View sum;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const LossRescale&);
void run(OnCuda, Stream&, const LossRescale&);

// losses = log(sum) + max - target, also where the mask is zero. A label outside [0, vocabulary) is
// meant for masked tokens only, whose loss is then 0; without a mask it is an error on the CPU and
// gives NaN on CUDA.
struct LossTokens {
  ConstView max, sum, target;
  ConstView labels;
  ConstView mask;  // or null
  std::int64_t vocabulary = 0;
  View losses;  // [rows]
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const LossTokens&);
void run(OnCuda, Stream&, const LossTokens&);

// Replaces the logits by the gradient of the mean loss times grad_scale. Padding columns and rows
// whose mask is zero become exactly zero.
struct LossGradient {
  View logits;
  ConstView labels;
  LossColumns columns;
  ConstView max, sum;
  ConstView mask;        // or null
  ConstView inverse;     // of LossMaskSum
  ConstView grad_scale;  // fp32 [1], or null: one
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const LossGradient&);
void run(OnCuda, Stream&, const LossGradient&);

// LossTokens and LossGradient in one pass over logits whose columns are all here: what no other
// rank has a part in.
struct LossAndGradient {
  View logits;
  ConstView labels;
  LossColumns columns;
  ConstView mask;        // or null
  ConstView inverse;     // of LossMaskSum
  ConstView grad_scale;  // fp32 [1], or null: one
  std::int64_t vocabulary = 0;
  View losses;  // [rows]
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const LossAndGradient&);
void run(OnCuda, Stream&, const LossAndGradient&);

// loss[0] = sum(mask * losses) * inverse. Masked tokens are not looked at.
struct LossMean {
  ConstView losses;
  ConstView mask;  // or null
  ConstView inverse;
  View loss;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const LossMean&);
void run(OnCuda, Stream&, const LossMean&);

// Sets the columns from num_valid on to -inf.
struct MaskColumns {
  View logits;
  std::int64_t num_valid = 0;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const MaskColumns&);
void run(OnCuda, Stream&, const MaskColumns&);

}  // namespace bloomery
