// DeepSpeed's compression_training: which linear layers compute on which grids.
#pragma once

#include "parallel/fake_quant_layers.h"
#include "train/plan/pretrain_options.h"

namespace bloomery {

// By the names that the layers have in Megatron, in which the patterns of the configuration are
// searched; the first group that names a layer counts. An Error says what is wrong.
GridsOfWeights grids_of_weights(const CompressionFlags& flags, const ModelOptions& model);

// What is impossible beside it, one line each.
std::vector<std::string> compression_problems(const PretrainOptions& options);

}  // namespace bloomery
