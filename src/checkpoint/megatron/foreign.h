// Checkpoints of Megatron and DeepSpeed, read as if they were ours: tensors under our names in any
// layout, with the optimizer's moments, and how far the run was. Their files are read where they
// lie; what is no tensor, number or text in them stays without a meaning and is never executed.
// docs/formats.md says what is understood.
#pragma once

#include <filesystem>
#include <optional>

#include "checkpoint/reader.h"

namespace bloomery {

// The folder of one checkpoint that `path` is or that it says is its latest: iter_N, release,
// global_stepN. None when there are no such files. An Error when what it names is not there.
std::optional<std::filesystem::path> foreign_checkpoint(const std::filesystem::path& path);

// Opens such a folder. An Error says what is missing, damaged or unknown.
CheckpointReader open_foreign(const std::filesystem::path& checkpoint,
                              const OpenBytes& open = open_input_file);

// The two kinds, for open_foreign.
CheckpointReader open_megatron(const std::filesystem::path& checkpoint, const OpenBytes& open);
CheckpointReader open_deepspeed(const std::filesystem::path& checkpoint, const OpenBytes& open);

}  // namespace bloomery
