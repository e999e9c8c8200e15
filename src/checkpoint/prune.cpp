#include "checkpoint/prune.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "base/error.h"
#include "checkpoint/disk.h"

namespace bloomery {
namespace {

bool is_good(const CheckpointEntry& entry, ThreadPool* pool) {
  try {
    const CheckpointReader reader = open_checkpoint(entry);
    if (pool != nullptr) {
      reader.verify(*pool);
    }
    return true;
  } catch (const Error&) {
    return false;
  }
}

bool is_leftover(const std::string& name) {
  const std::size_t tmp = name.find(".tmp-");
  return tmp != std::string::npos && step_of_name(name.substr(0, tmp)).has_value();
}

}  // namespace

void check_keep(const KeepOptions& options) {
  check(options.last == 0 || options.last >= 2,
        "at least the last 2 checkpoints must be kept, not ", options.last,
        ": the newest may be damaged when it is needed");
  check(options.every >= 0, "keeping every ", options.every, "th checkpoint has no meaning");
}

std::vector<CheckpointEntry> to_prune(const std::filesystem::path& folder,
                                      const KeepOptions& options, ThreadPool* pool) {
  check_keep(options);
  std::vector<CheckpointEntry> removed;
  if (options.last == 0) {
    return removed;
  }
  std::vector<CheckpointEntry> entries = list_checkpoints(folder);
  std::ranges::reverse(entries);
  std::int64_t good = 0;
  for (const CheckpointEntry& entry : entries) {
    if (good < options.last) {
      good += is_good(entry, pool) ? 1 : 0;
    } else if (options.every == 0 || entry.step % options.every != 0) {
      removed.push_back(entry);
    }
  }
  std::ranges::reverse(removed);
  return removed;
}

void remove_checkpoint(const std::filesystem::path& checkpoint) {
  std::filesystem::path trash = checkpoint;
  for (int i = 0; i == 0 || std::filesystem::exists(trash); ++i) {
    trash = checkpoint;
    trash += concat(".tmp-trash-", getpid(), "-", i);
  }
  if (std::rename(checkpoint.c_str(), trash.c_str()) != 0) {
    if (errno == ENOENT) {
      return;
    }
    throw std::runtime_error(
        concat("cannot remove ", checkpoint.string(), ": ", std::strerror(errno)));
  }
  const std::filesystem::path parent = checkpoint.parent_path();
  sync_folder(parent.empty() ? "." : parent);  // the name is gone before a part of it is
  std::filesystem::remove_all(trash);
}

void remove_leftovers(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> leftovers;
  for (const auto& item : std::filesystem::directory_iterator(folder)) {
    if (is_leftover(item.path().filename().string())) {
      leftovers.push_back(item.path());
    }
  }
  for (const std::filesystem::path& path : leftovers) {
    std::filesystem::remove_all(path);
  }
}

}  // namespace bloomery
