// One pass over a flat shard: gradient, fp32 weights and moments in; weights, moments and the copy
// in the compute dtype out. What changes from step to step is read from device memory, so that
// nothing waits for the host.
#pragma once

#include "device/launch.h"
#include "ops/optimizer/units.h"
#include "tensor/tensor.h"

namespace bloomery {

// Decided on the device for each step (optim/step_plan.h).
struct UpdateScalars {
  double grad_factor = 1;         // undoes the loss scale and clips
  double step_size = 0;           // learning rate / (1 - beta1^t)
  double inverse_sqrt_bias2 = 1;  // 1 / sqrt(1 - beta2^t)
  double decay_factor = 1;        // 1 - learning rate * weight decay; weights are multiplied by it
  double l2 = 0;                  // weight decay as a part of the gradient
  std::int64_t skip = 0;          // nonzero: change nothing
};

// The buffers of an update. All have `count` elements and start at multiples of 16 bytes.
struct UpdateBuffers {
  ConstView grad;        // dtype of master, or bf16
  View master;           // fp32 or (CPU) fp64
  View value;            // bf16 or fp16, receives the rounded weights; null: master is the value
  View moment1;          // dtype of master
  View moment2;          // Adam only
  ConstView unit_flags;  // uint8 [num_units(count)]; kUnitDecays selects decay_factor and l2
};

// With g = grad_factor * grad + l2 * p:
//   m = beta1 m + (1 - beta1) g
//   v = beta2 v + (1 - beta2) g^2
//   p = decay_factor p - step_size * m / (sqrt(v) * inverse_sqrt_bias2 + epsilon)
// AdamW has l2 = 0, Adam has decay_factor = 1.
struct AdamUpdate {
  UpdateBuffers buffers;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  const UpdateScalars* scalars = nullptr;  // device memory
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const AdamUpdate&);
void run(OnCuda, Stream&, const AdamUpdate&);

// m = momentum m + g;  p = decay_factor p - step_size m, with g as above.
struct MomentumUpdate {
  UpdateBuffers buffers;
  double momentum = 0.9;
  const UpdateScalars* scalars = nullptr;  // device memory
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const MomentumUpdate&);
void run(OnCuda, Stream&, const MomentumUpdate&);

}  // namespace bloomery
