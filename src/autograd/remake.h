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
  explicit KeepPolicy(Device&) {}

  // Values that one pass over kept memory makes again (activations, norms) are not kept.
  bool remake_cheap_values = false;
};

}  // namespace bloomery
