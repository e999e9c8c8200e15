// Which checkpoints are deleted, and what killed processes have left. remove_folder() removes one
// so that a kill leaves it whole or gone.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "checkpoint/folder.h"

namespace bloomery {

struct KeepOptions {
  std::int64_t last = 0;   // the newest good ones that stay, at least 2; 0: all
  std::int64_t every = 0;  // steps divisible by this stay for ever; 0: none
};
void check_keep(const KeepOptions& options);

// What the options say to remove: everything older than the newest `last` good ones, apart from
// `every` and from the one that the link kBestName names. A damaged one never counts as kept. With
// a pool "good" means every byte, else the manifest and the sizes. While the storage fails nothing
// is said to go, but a std::system_error comes. Steps behind `newest` are looked
// at by nobody: a run that has just saved step N removes for its sake only what came before.
std::vector<CheckpointEntry> to_prune(
    const std::filesystem::path& folder, const KeepOptions& options, ThreadPool* pool,
    std::int64_t newest = std::numeric_limits<std::int64_t>::max(),
    const OpenBytes& open = open_input_file);

// Deletes what saves and removals that were killed have left, and gives the names of those that it
// leaves because a process of another machine may be writing them. Only for the holder of the
// folder's lock.
std::vector<std::string> remove_leftovers(const std::filesystem::path& folder);

}  // namespace bloomery
