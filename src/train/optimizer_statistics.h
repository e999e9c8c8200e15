// Norms and counts of a rank's weights, gradients and moments, for logs that ask for them. All are
// collective over the tensor-parallel ranks and wait for the device.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "train/gpt_rank.h"

namespace bloomery {

double parameter_norm(GptRank& rank);
// Elements of the last gradient that are zero.
double gradient_zeros(GptRank& rank);
// Megatron's "optimizer/variance_l2" and its like, by name.
std::vector<std::pair<std::string, double>> optimizer_statistics(GptRank& rank);

}  // namespace bloomery
