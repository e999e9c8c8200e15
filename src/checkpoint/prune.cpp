#include "checkpoint/prune.h"

#include <algorithm>

#include "base/error.h"
#include "base/folder.h"

namespace bloomery {
namespace {

bool is_good(const CheckpointEntry& entry, ThreadPool* pool, const OpenBytes& open) {
  try {
    const CheckpointReader reader = open_checkpoint(entry, open);
    if (pool != nullptr) {
      reader.verify(*pool);
    }
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

void check_keep(const KeepOptions& options) {
  check(options.last == 0 || options.last >= 2,
        "at least the last 2 checkpoints must be kept, not ", options.last,
        ": the newest may be damaged when it is needed");
  check(options.every >= 0, "keeping every ", options.every, "th checkpoint has no meaning");
}

std::vector<CheckpointEntry> to_prune(const std::filesystem::path& folder,
                                      const KeepOptions& options, ThreadPool* pool,
                                      std::int64_t newest, const OpenBytes& open) {
  check_keep(options);
  std::vector<CheckpointEntry> removed;
  if (options.last == 0) {
    return removed;
  }
  std::error_code absent;
  const std::filesystem::path best = std::filesystem::read_symlink(folder / kBestName, absent);
  std::vector<CheckpointEntry> entries = list_checkpoints(folder);
  std::erase_if(entries, [&](const CheckpointEntry& entry) { return entry.step > newest; });
  std::ranges::reverse(entries);
  std::int64_t good = 0;
  for (const CheckpointEntry& entry : entries) {
    if (good < options.last) {
      good += is_good(entry, pool, open) ? 1 : 0;
    } else if ((options.every == 0 || entry.step % options.every != 0) &&
               entry.folder.filename() != best) {
      removed.push_back(entry);
    }
  }
  std::ranges::reverse(removed);
  return removed;
}

std::vector<std::string> remove_leftovers(const std::filesystem::path& folder) {
  return remove_temporaries(folder,
                            [](std::string_view name) { return step_of_name(name).has_value(); });
}

}  // namespace bloomery
