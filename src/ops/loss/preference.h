// The kernels of preference losses: of two answers to a prompt the chosen one is to become likelier
// than the rejected one, measured from where a reference model stands. With
//   h = (log p(chosen) - log p(rejected)) - the same under the reference,  z = beta h
// the loss of a pair is
//   sigmoid  (1 - s) softplus(-z) + s softplus(z)               DPO; s: label smoothing
//   robust   ((1 - s) softplus(-z) - s softplus(z)) / (1 - 2 s)
//   hinge    max(0, 1 - z)
//   ipo      (h - 1 / (2 beta))^2, of log-probabilities that are means over an answer's tokens
// Sequences 2 i and 2 i + 1 are the chosen and the rejected text of pair i. The op that uses them
// is parallel/preference.
#pragma once

#include "device/launch.h"
#include "tensor/tensor.h"

namespace bloomery {

enum class PreferenceLoss { sigmoid, robust, hinge, ipo };

struct PreferenceOptions {
  PreferenceLoss loss = PreferenceLoss::sigmoid;
  double beta = 0.1, label_smoothing = 0;
};

// Of each sequence the log-probability of its answer, -sum(mask * losses), and how many tokens that
// are, sum(mask). Masked tokens are not looked at.
struct AnswerSums {
  ConstView losses;  // accumulation dtype [sequences * length]
  ConstView mask;    // fp32, of the same shape
  View sums;         // [2, sequences]
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const AnswerSums&);
void run(OnCuda, Stream&, const AnswerSums&);

// What is reported of pairs, each the mean over them.
enum PreferenceFigure {
  kPreferenceLoss,
  kRewardChosen,  // beta times how much likelier than under the reference
  kRewardRejected,
  kRewardAccuracy,  // how often the chosen one's is larger
  kRewardMargin,
  kLogpsChosen,
  kLogpsRejected,
  kNumPreferenceFigures
};

struct PreferencePairs {
  ConstView sums;       // of AnswerSums, over all ranks that hold tokens of the sequences
  ConstView reference;  // fp32 [sequences]: sums[0] under the reference
  PreferenceOptions options;
  double share = 1;  // that is written of each figure
  View figures;      // [kNumPreferenceFigures]
  View weights;  // [sequences]: the mean loss, derived by the loss of one of its answer's tokens
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const PreferencePairs&);
void run(OnCuda, Stream&, const PreferencePairs&);

// tokens = mask * the weight of the token's sequence.
struct AnswerWeights {
  ConstView mask;     // fp32 [sequences * length]
  ConstView weights;  // accumulation dtype [sequences]
  View tokens;        // fp32, of the mask's shape
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const AnswerWeights&);
void run(OnCuda, Stream&, const AnswerWeights&);

}  // namespace bloomery
