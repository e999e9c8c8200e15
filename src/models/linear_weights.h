// Which weights of a model linear layers in blocks multiply by.
#pragma once

#include "models/model.h"

namespace bloomery {

// Those of the layers beside which adapters can stand: attention's and the MLPs'.
ParameterList linear_weights(const Model& model);

}  // namespace bloomery
