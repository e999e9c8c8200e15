// What linear layers of few bits know beside their weights, in checkpoints: scales of fp8, ranges
// of inputs that are rounded.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/host_staging.h"
#include "checkpoint/reader.h"
#include "train/step/rank.h"

namespace bloomery {

void add_layer_states(HostStaging& stage, Rank& rank);
void describe_layer_states(Rank& rank, RunState& state);
// What is not there starts anew, which a note says.
void load_layer_states(Rank& rank, const CheckpointReader& reader, std::vector<std::string>& notes);

}  // namespace bloomery
