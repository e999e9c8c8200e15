// One pass over a flat shard: gradient, fp32 weights and moments in; weights, moments and the copy
// in the compute dtype out. What changes from step to step is read from device memory, so that
// nothing waits for the host.
#pragma once

#include "device/launch.h"
#include "ops/optimizer/units.h"
#include "ops/optimizer/weight_halves.h"
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
  ConstView grad;        // dtype of the weights, or bf16
  View master;           // fp32 or (CPU) fp64; null: value and rest are its halves
  View value;            // bf16 or fp16, receives the rounded weights; null: master is the value
  View rest;             // of bf16 values (weight_halves.h); null: there is a master
  View moment1;          // dtype of the weights
  View moment2;          // Adam only
  ConstView unit_flags;  // uint8 [num_units(count)]; kUnitDecays selects decay_factor and l2

  std::int64_t numel() const { return grad.numel(); }
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
