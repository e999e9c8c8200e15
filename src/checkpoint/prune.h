// Removing checkpoints, so that a kill at any moment leaves each one whole or gone: a checkpoint
// first gets a temporary name, then is deleted.
#pragma once

#include <cstdint>
#include <filesystem>
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
// `every`. A damaged one never counts as kept. With a pool "good" means every byte, else the
// manifest and the sizes.
std::vector<CheckpointEntry> to_prune(const std::filesystem::path& folder,
                                      const KeepOptions& options, ThreadPool* pool);

// One that is gone already is no failure.
void remove_checkpoint(const std::filesystem::path& checkpoint);

// Deletes what saves and removals that were killed have left. Only for the holder of FolderLock.
void remove_leftovers(const std::filesystem::path& folder);

}  // namespace bloomery
