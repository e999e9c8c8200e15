// Values that are made again in the backward pass, from what other entries keep, instead of being
// kept themselves.
#pragma once

#include <functional>

#include "tensor/tensor.h"

namespace bloomery {

// Makes a value again, up to the rounding of what is kept. Empty: nobody can.
using Remake = std::function<Tensor(Stream&)>;

// What ops keep for the backward pass, as a service of the device.
struct KeepPolicy {
  explicit KeepPolicy(Device& device) : remake_by_the_way(device.rules() == DeviceKind::cuda) {}

  // Values that one pass over kept memory makes again (activations, norms) are not kept.
  bool remake_cheap_values = false;
  // Those are not kept that a pass which reads their source anyway makes again. On a GPU this costs
  // one write to memory, about a hundredth of a step; on a CPU it would cost a pass.
  bool remake_by_the_way;
};

}  // namespace bloomery
