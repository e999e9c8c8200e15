// Values that are made again in the backward pass, from what other entries keep, instead of being
// kept themselves.
#pragma once

#include <functional>

#include "tensor/tensor.h"

namespace bloomery {

// Makes a value again, up to the rounding of what is kept. Empty: nobody can.
using Rematerialize = std::function<Tensor(Stream&)>;

}  // namespace bloomery
