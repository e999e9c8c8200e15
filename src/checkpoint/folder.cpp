#include "checkpoint/folder.h"

#include <algorithm>
#include <charconv>
#include <system_error>

#include "base/error.h"
#include "checkpoint/megatron/foreign.h"

namespace bloomery {
namespace {

constexpr std::string_view kStep = "step-";

// Another error with the same code will say it again.
std::string text_without_code(const std::system_error& error) {
  std::string text = error.what();
  const std::string code = ": " + error.code().message();
  if (text.ends_with(code)) {
    text.resize(text.size() - code.size());
  }
  return text;
}

std::vector<CheckpointEntry> listed(const std::filesystem::path& folder) {
  std::vector<CheckpointEntry> entries;
  if (!std::filesystem::exists(folder)) {
    return entries;
  }
  check(std::filesystem::is_directory(folder), folder.string(),
        " is a file, and checkpoints lie in folders: give --save and --load a folder");
  for (const auto& item : std::filesystem::directory_iterator(folder)) {
    if (const auto step = step_of_name(item.path().filename().string())) {
      entries.push_back({*step, item.path()});
    }
  }
  std::ranges::sort(entries, {}, &CheckpointEntry::step);
  return entries;
}

}  // namespace

std::string step_name(std::int64_t step) { return concat(kStep, step); }

std::optional<std::int64_t> step_of_name(std::string_view name) {
  if (!name.starts_with(kStep)) {
    return std::nullopt;
  }
  std::int64_t step = -1;
  const std::string_view digits = name.substr(kStep.size());
  std::from_chars(digits.data(), digits.data() + digits.size(), step);
  // Written back it must be the same: no sign, no leading zero, nothing behind.
  return step >= 0 && name == step_name(step) ? std::optional(step) : std::nullopt;
}

std::vector<CheckpointEntry> list_checkpoints(const std::filesystem::path& folder,
                                              const Patience& patience) {
  std::vector<CheckpointEntry> entries;
  retry(patience, [&] {
    try {
      entries = listed(folder);
    } catch (const std::system_error& error) {
      throw std::system_error(error.code(), "cannot list " + folder.string());
    }
  });
  return entries;
}

std::vector<CheckpointEntry> checkpoints_at(const std::filesystem::path& path,
                                            const Patience& patience) {
  // A path may end with a slash; its last name then is empty.
  const std::filesystem::path clean = path.has_filename() ? path : path.parent_path();
  const auto step = step_of_name(clean.filename().string());
  if (step && std::filesystem::exists(clean)) {
    return {{*step, clean}};
  }
  if (std::filesystem::exists(clean / kManifestName)) {
    return {{-1, clean}};
  }
  return list_checkpoints(clean, patience);
}

CheckpointReader open_checkpoint(const CheckpointEntry& entry, const OpenBytes& open) {
  CheckpointReader reader(entry.folder, open);
  const auto named = step_of_name(entry.folder.filename().string());
  check(!named || *named == reader.state().step, entry.folder.string(),
        ": damaged: its manifest is of step ", reader.state().step);
  return reader;
}

std::optional<CheckpointReader> find_newest(const std::filesystem::path& path, ThreadPool* pool,
                                            const Log& log, const OpenBytes& open,
                                            const Folders& damaged) {
  std::vector<CheckpointEntry> entries;
  retry({}, [&] { entries = checkpoints_at(path, {.tries = 1}); });
  std::ranges::reverse(entries);
  for (const CheckpointEntry& entry : entries) {
    if (damaged.contains(entry.folder)) {
      continue;
    }
    try {
      CheckpointReader reader = open_checkpoint(entry, open);
      if (pool != nullptr) {
        reader.verify(*pool);
      } else {
        reader.check_small_files();
      }
      if (&entry != &entries.front()) {
        log.warning("using the last good checkpoint, ", entry.folder.string());
      }
      return reader;
    } catch (const Error& error) {
      log.warning("Skipping unreadable checkpoint: ", error.what());
    } catch (const std::system_error& error) {
      throw std::system_error(error.code(), storage_failure(text_without_code(error)));
    }
  }
  check(entries.empty(), "no good checkpoint in ", path.string(), ": all ", entries.size(),
        " are damaged (see above); `bloomery checkpoint verify` shows details. Move them away to "
        "start from scratch");
  if (const auto foreign = foreign_checkpoint(path)) {
    check(!damaged.contains(*foreign), foreign->string(), " is damaged (see above)");
    return open_foreign(*foreign, open, {.log = log});
  }
  return std::nullopt;
}

CheckpointReader open_as_others(const std::filesystem::path& path, const Patience& patience,
                                const OpenBytes& open) {
  const Log quiet(0, 1, LogLevel::error);  // the first rank says what there is to say
  std::optional<CheckpointReader> reader;
  retry(patience, [&] {
    const std::vector<CheckpointEntry> entries = checkpoints_at(path, {.tries = 1});
    try {
      reader.emplace(entries.empty() ? open_foreign(path, open, {.log = quiet})
                                     : open_checkpoint(entries.back(), open));
    } catch (const Error& error) {
      throw std::system_error(std::make_error_code(std::errc::no_such_file_or_directory),
                              concat("this rank does not see the checkpoint ", path.string(),
                                     " as the first one does: --load must be on storage that all "
                                     "ranks share (",
                                     error.what(), ")"));
    } catch (const std::system_error& error) {
      throw std::runtime_error(storage_failure(error.what()));
    }
  });
  return std::move(*reader);
}

std::string storage_failure(const std::string& error) {
  return concat(
      "the storage fails; the checkpoint may be intact, and nothing was moved or removed. Start "
      "again when the storage works: ",
      error);
}

}  // namespace bloomery
