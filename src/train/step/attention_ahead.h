// Plans of attention, made before the first step needs them: those of cuDNN take longer than
// anything else there, and initial values can be made meanwhile.
#pragma once

#include "ops/attention/attention.h"
#include "train/plan/plan.h"

namespace bloomery {

// The attention of a step that depends on shapes alone, each problem once: what the library of a
// GPU may compute. Addresses are of no memory.
struct AttentionCalls {
  std::vector<AttentionForward> forward;
  std::vector<AttentionBackward> backward;
};
// Of the first rank, on a GPU.
AttentionCalls attention_calls(const Plan& plan, const SampleFields& fields);

// Computes each once, with memory for the moment, whose numbers nobody reads.
void make_attention_plans(Stream& stream, const AttentionCalls& calls);

}  // namespace bloomery
