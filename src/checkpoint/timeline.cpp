#include "checkpoint/timeline.h"

#include <algorithm>

#include "base/error.h"
#include "base/file_lock.h"
#include "base/folder.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;

std::vector<CheckpointEntry> later_steps(const fs::path& save, std::int64_t own) {
  std::vector<CheckpointEntry> entries = list_checkpoints(save);
  std::erase_if(entries, [&](const CheckpointEntry& entry) { return entry.step <= own; });
  return entries;
}

fs::path make_earlier(const fs::path& save) {
  for (int number = 1;; ++number) {
    fs::path folder = save / concat("earlier-", number);
    if (fs::create_directory(folder)) {
      sync_folder(save);
      return folder;
    }
  }
}

// What a run writes beside its checkpoints: metrics, report, options.
void keep_other_files(const fs::path& save, const fs::path& earlier, bool copy) {
  std::vector<fs::path> files;
  for (const auto& item : fs::directory_iterator(save)) {
    if (item.is_regular_file() && !item.path().filename().string().starts_with('.')) {
      files.push_back(item.path());
    }
  }
  for (const fs::path& file : files) {
    if (copy) {
      fs::copy_file(file, earlier / file.filename());
    } else {
      fs::rename(file, earlier / file.filename());
    }
  }
}

}  // namespace

std::int64_t own_step(const fs::path& save, const CheckpointReader* start) {
  std::error_code absent;
  const bool here =
      start != nullptr &&
      fs::equivalent(fs::absolute(start->folder()).lexically_normal().parent_path(), save, absent);
  return here ? start->state().step : kNoStep;
}

void refuse_later_steps(const fs::path& save, std::int64_t own) {
  const auto later = later_steps(save, own);
  if (later.empty()) {
    return;
  }
  const std::string which =
      later.size() == 1 ? "step-" + std::to_string(later.front().step)
                        : concat(later.size(), " checkpoints up to step-", later.back().step);
  throw Error(
      concat("--save ", save.string(), " already holds ", which, ", and this run would start ",
             own == kNoStep ? "another line of steps there" : concat("behind it, at step ", own),
             ": give another --save, or --load ", save.string(),
             " to go on from its newest checkpoint, or --fork to move what is there to ",
             save.string(), "/earlier-1"));
}

std::string foreseen_refusal(const fs::path& save, const fs::path& load) {
  const auto found = load.empty() ? std::vector<CheckpointEntry>() : checkpoints_at(load);
  std::error_code absent;
  const bool here = !found.empty() && fs::equivalent(folder_of(found.back().folder), save, absent);
  try {
    refuse_later_steps(save, here ? found.back().step : kNoStep);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void set_later_steps_aside(const fs::path& save, std::int64_t own, const Log& log) {
  if (later_steps(save, own).empty()) {
    return;
  }
  const auto lock = FileLock::try_lock(save / kSaveLock);
  check(lock != nullptr, lock_holder(save / kSaveLock), " saves its checkpoints in ", save.string(),
        "; end it or choose another --save");
  const auto later = later_steps(save, own);
  const fs::path earlier = make_earlier(save);
  keep_other_files(save, earlier, own != kNoStep);
  for (const CheckpointEntry& entry : later) {
    fs::rename(entry.folder, earlier / entry.folder.filename());
  }
  sync_folder(earlier);
  sync_folder(save);
  log.info(later.size(), later.size() == 1 ? " checkpoint" : " checkpoints", " up to step-",
           later.empty() ? own : later.back().step, " went from ", save.string(), " to ",
           earlier.string());
}

fs::path set_step_aside(const CheckpointEntry& entry) {
  const fs::path save = folder_of(entry.folder);
  const fs::path name = make_earlier(save) / entry.folder.filename();
  fs::rename(entry.folder, name);
  sync_folder(folder_of(name));
  return name;
}

}  // namespace bloomery
