// Checkpoints of Megatron and DeepSpeed, read as if they were ours: tensors under our names in any
// layout, with the optimizer's moments, and how far the run was. Their files are read where they
// lie; what is no tensor, number or text in them stays without a meaning and is never executed.
// docs/formats.md says what is understood.
#pragma once

#include <filesystem>
#include <optional>

#include "base/log.h"
#include "checkpoint/megatron/names.h"
#include "checkpoint/reader.h"

namespace bloomery {

// The folder of one checkpoint that `path` is or that it says is its latest: iter_N, release,
// global_stepN. None when there are no such files. An Error when what it names is not there.
std::optional<std::filesystem::path> foreign_checkpoint(const std::filesystem::path& path);

struct ForeignReading {
  // How fused queries, keys and values lie; none: as the file's arguments and version say.
  std::optional<QkvOrder> qkv = std::nullopt;
  Log log = Log();  // of what the files do not say outright
};

// Opens such a folder. An Error says what is missing, damaged or unknown.
CheckpointReader open_foreign(const std::filesystem::path& checkpoint,
                              const OpenBytes& open = open_input_file,
                              const ForeignReading& how = {});

// The two kinds, for open_foreign.
CheckpointReader open_megatron(const std::filesystem::path& checkpoint, const OpenBytes& open,
                               const ForeignReading& how);
CheckpointReader open_deepspeed(const std::filesystem::path& checkpoint, const OpenBytes& open,
                                const ForeignReading& how);

// The order in a file of that version, `place`, whose program knew FPDT or did not.
QkvOrder qkv_order(double version, bool knows_fpdt, const ForeignReading& how,
                   const std::string& place);

}  // namespace bloomery
