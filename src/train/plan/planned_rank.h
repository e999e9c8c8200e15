// The rank that a plan describes, and the memory that it takes: a step is run on the abstract
// device, with the allocator of a real run.
#pragma once

#include "train/plan/plan.h"
#include "train/step/rank.h"

namespace bloomery {

// As the plan says, on the abstract device that stands for another.
RankOptions abstract_rank(const Plan& plan, DeviceKind stands_for);

// Passes and update of as many micro-batches as differ from each other, of samples that nobody
// reads, after so many steps of the run: on the abstract device.
void take_planned_step(Rank& rank, const Plan& plan, const SampleFields& fields,
                       std::int64_t completed_steps = 0);

// Of the first rank. Scratch inside kernels is not in it.
struct PlannedMemory {
  std::int64_t parameters = 0;  // values that the model computes with
  std::int64_t gradients = 0;   // fp32, or bf16 by --grad-dtype
  std::int64_t optimizer = 0;   // master weights of 16-bit values, and moments
  // At the peak beside those: what a micro-batch keeps for its backward pass, temporary tensors,
  // and of sharded values and gradients what is whole for a while.
  std::int64_t activations = 0;
  std::int64_t in_files = 0;
  std::int64_t on_host = 0;  // beside the device, at its peak
  // Of that: weights and optimizer. The rest are inputs of recomputed layers, and keys of chunks.
  std::int64_t state_on_host = 0;
  std::int64_t total() const {  // on the device
    return parameters + gradients + optimizer + activations;
  }
};
// For samples of these fields, on a device of this kind.
PlannedMemory plan_memory(const Plan& plan, const SampleFields& fields, DeviceKind kind);

}  // namespace bloomery
