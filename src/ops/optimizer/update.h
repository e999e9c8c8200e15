// One pass over a flat shard: gradient, fp32 weights and the optimizer's state in; weights, state
// and the copy in the compute dtype out. What changes from step to step is read from device memory,
// so that nothing waits for the host.
#pragma once

#include <array>

#include "device/launch.h"
#include "ops/optimizer/rules.h"
#include "ops/optimizer/split_master.h"
#include "ops/optimizer/units.h"
#include "tensor/tensor.h"

namespace bloomery {

// The buffers of an update. All have `count` elements and start at multiples of 16 bytes.
struct UpdateBuffers {
  ConstView grad;  // dtype of the weights, or bf16
  WeightForm form = WeightForm::exact;
  View master;  // fp32 or (CPU) fp64; not of split weights
  View value;   // bf16 or fp16, receives the rounded weights; not of exact ones
  View low;     // of split weights
  std::array<View, kMaxStateTensors> state;  // dtype of the weights; as many as the rule declares
  ConstView unit_flags;  // uint8 [num_units(count)]; kUnitDecays selects decay_factor and l2

  std::int64_t numel() const { return grad.numel(); }
};

struct Update {
  UpdateBuffers buffers;
  OptimizerRule rule;
  const UpdateScalars* scalars = nullptr;  // device memory
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const Update&);
void run(OnCuda, Stream&, const Update&);

}  // namespace bloomery
