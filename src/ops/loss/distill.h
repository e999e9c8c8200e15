// The kernels of distillation: how far a student's logits s are from a teacher's t at temperature
// T,
//   KL(p || q) = sum_c p[c] (t[c] - s[c]) / T - logsumexp(t / T) + logsumexp(s / T)
// with p = softmax(t / T) and q = softmax(s / T), over columns that may be split between ranks. The
// op that uses them, chunk by chunk, is parallel/head_loss.
#pragma once

#include "ops/loss/loss.h"

namespace bloomery {

// Of the columns held here, per row: the largest logit, student's and teacher's, twice, because one
// copy becomes the maximum over all ranks; and relative to it the three sums
//   exp((s - max) / T),  exp((t - max) / T),  exp((t - max) / T) (t - s) / T.
struct DistillStatistics {
  ConstView student, teacher;  // [rows, columns]
  std::int64_t num_valid = 0;  // columns from here on are padding
  double inverse_temperature = 1;
  View local_max, max;  // accumulation dtype [2, rows]
  View sums;            // [3, rows]
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const DistillStatistics&);
void run(OnCuda, Stream&, const DistillStatistics&);

// Refers the local sums to the maxima over all ranks.
struct DistillRescale {
  ConstView local_max, max;
  double inverse_temperature = 1;
  View sums;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const DistillRescale&);
void run(OnCuda, Stream&, const DistillRescale&);

// losses = scale KL.
struct DistillTokens {
  ConstView max, sums;
  double inverse_temperature = 1;
  double scale = 1;
  View losses;  // [rows]
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const DistillTokens&);
void run(OnCuda, Stream&, const DistillTokens&);

// Replaces the teacher's logits by the gradient of the student's: scale / T (q - p) times mask,
// inverse and grad_scale. Padding columns and rows whose mask is zero become exactly zero.
struct DistillGradient {
  ConstView student;
  View teacher;
  std::int64_t num_valid = 0;
  double inverse_temperature = 1;
  double scale = 1;
  ConstView max, sums;
  ConstView mask;        // fp32 [rows], or null
  ConstView inverse;     // of LossMaskSum
  ConstView grad_scale;  // fp32 [1], or null: one
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const DistillGradient&);
void run(OnCuda, Stream&, const DistillGradient&);

}  // namespace bloomery
