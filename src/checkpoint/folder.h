// The folder of a run's checkpoints: SAVE/step-N is committed, names with `tmp` are not, and other
// names belong to others. The newest good checkpoint is found by looking; no file points to it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/log.h"
#include "base/thread_pool.h"
#include "checkpoint/reader.h"

namespace bloomery {

std::string step_name(std::int64_t step);                         // "step-100"
std::optional<std::int64_t> step_of_name(std::string_view name);  // none: another name

// A link beside the checkpoints to the one that a run found best, if it looks for that.
inline constexpr const char* kBestName = "best";

struct CheckpointEntry {
  std::int64_t step = 0;
  std::filesystem::path folder;
};

// The committed checkpoints of a folder, good or damaged, by rising step. An absent folder has
// none. A std::system_error when the storage does not list it for so long.
std::vector<CheckpointEntry> list_checkpoints(const std::filesystem::path& folder,
                                              const Patience& patience = {});
// The same, or the one checkpoint that `path` itself is: a step-N, or any folder with a manifest.
std::vector<CheckpointEntry> checkpoints_at(const std::filesystem::path& path,
                                            const Patience& patience = {});

// Opens one; an Error also when its folder has the name of another step.
CheckpointReader open_checkpoint(const CheckpointEntry& entry,
                                 const OpenBytes& open = open_input_file);

// The newest checkpoint at `path` whose every byte is good, and a warning for each newer one that
// is not. None when there is no checkpoint at all; an Error when all are damaged, because training
// would start over and, later, replace them. A std::system_error when the storage does not give
// one: that is no reason to take an older one. A null pool leaves the blocks of tensors to be
// checked as they are read; who then finds one damaged looks again, with that checkpoint among
// `damaged`. Where there is none of ours, one of Megatron's or DeepSpeed's counts, whose blocks are
// checked as they are read.
using Folders = std::set<std::filesystem::path>;
std::optional<CheckpointReader> find_newest(const std::filesystem::path& path, ThreadPool* pool,
                                            const Log& log, const OpenBytes& open = open_input_file,
                                            const Folders& damaged = {});

// The checkpoint that another rank has opened at `path`, opened by this one. What is absent or
// damaged here is then an error of the storage, which this machine sees late or not at all: it is
// waited for with this patience, which `open` has for its own.
CheckpointReader open_as_others(const std::filesystem::path& path, const Patience& patience = {},
                                const OpenBytes& open = open_input_file);

// What to say of an error of the storage.
std::string storage_failure(const std::string& error);

}  // namespace bloomery
