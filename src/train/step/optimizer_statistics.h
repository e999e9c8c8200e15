// Norms and counts of a rank's weights, gradients and moments, for logs that ask for them. All are
// collective over all ranks and wait for the device.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "train/step/rank.h"

namespace bloomery {

double parameter_norm(Rank& rank);
// Elements of the last gradient that are zero.
double gradient_zeros(Rank& rank);
// Megatron's "optimizer/variance_l2" and its like, by name.
std::vector<std::pair<std::string, double>> optimizer_statistics(Rank& rank);

}  // namespace bloomery
