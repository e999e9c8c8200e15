// Of preference tuning: how likely the answers of all pairs are under the model that a run starts
// from. It says so once, before the first step, and is then no longer needed; a run that goes on
// finds it in a file.
#pragma once

#include <filesystem>

#include "train/run/training_data.h"
#include "train/step/rank.h"

namespace bloomery {

// Of all pairs of the split, by the weights that the rank has; given to the instruction data of
// `data`. Collective over all ranks.
void compute_reference(Rank& rank, const TrainingData& data, Split split, FeedOptions feed);

// dpo_reference.safetensors in the folder of checkpoints, which is made if need be. Read, it is
// given to the instruction data; an Error says why it is not theirs.
void write_reference(const std::filesystem::path& folder, const InstructData& pairs);
void read_reference(const std::filesystem::path& folder, const InstructData& pairs);

}  // namespace bloomery
