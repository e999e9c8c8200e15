#include "base/folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <limits>
#include <optional>
#include <stdexcept>

#include "base/error.h"
#include "base/temporary_name.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const char* action, const fs::path& path) {
  throw std::runtime_error(
      concat("cannot ", action, " ", path.string(), ": ", std::strerror(errno)));
}

// What time it is where the folder lies, which may be another machine with another clock.
fs::file_time_type time_in(const fs::path& folder) {
  const fs::path probe = temporary_name(folder / ".clock");
  const int descriptor = open(probe.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor < 0) fail("create", probe);
  close(descriptor);
  const fs::file_time_type time = fs::last_write_time(probe);
  fs::remove(probe);
  return time;
}

// Of a file, or of a folder and all that is in it.
fs::file_time_type last_change(const fs::path& path) {
  fs::file_time_type last = fs::last_write_time(path);
  if (fs::is_directory(path)) {
    for (const auto& item : fs::recursive_directory_iterator(path)) {
      last = std::max(last, item.last_write_time());
    }
  }
  return last;
}

// No write pauses for so long: whoever made this has ended, on whatever machine.
bool is_abandoned(const fs::path& path, fs::file_time_type now) {
  constexpr std::chrono::hours kAbandoned{24};
  try {
    return now - last_change(path) > kAbandoned;
  } catch (const fs::filesystem_error&) {  // it goes at this moment
    return false;
  }
}

}  // namespace

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : ".";
}

void sync_folder(const fs::path& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) fail("open", folder);
  const int result = fsync(descriptor);
  const int error = errno;
  close(descriptor);
  errno = error;
  if (result != 0 && error != EINVAL) {  // EINVAL: a file system that has nothing to sync
    fail("write to disk", folder);
  }
}

void create_folders(const fs::path& folder) {
  std::vector<fs::path> missing;
  fs::path each = fs::absolute(folder).lexically_normal();
  for (each = each.has_filename() ? each : each.parent_path(); !fs::exists(each);
       each = each.parent_path()) {
    missing.push_back(each);
  }
  for (auto path = missing.rbegin(); path != missing.rend(); ++path) {
    fs::create_directory(*path);
    sync_folder(path->parent_path());
  }
}

FreeSpace free_space(const fs::path& folder) {
  struct statvfs status {};
  if (statvfs(folder.c_str(), &status) != 0) fail("ask for the free space of", folder);
  constexpr std::uint64_t kMany = std::numeric_limits<std::uint64_t>::max();
  // Some file systems count no files; they say 0 of 0.
  return {.bytes = static_cast<std::uint64_t>(status.f_bavail) * status.f_frsize,
          .files = status.f_files == 0 ? kMany : status.f_favail};
}

std::vector<std::string> remove_temporaries(const fs::path& folder,
                                            const std::function<bool(std::string_view)>& is_final) {
  std::vector<fs::path> rubbish;
  std::vector<std::string> kept;
  std::optional<fs::file_time_type> now;
  for (const auto& item : fs::directory_iterator(folder)) {
    const std::string name = item.path().filename().string();
    const std::string_view final_name = final_name_of(name);
    if (final_name.empty() || !is_final(final_name)) continue;
    if (writer_has_ended(name)) {
      rubbish.push_back(item.path());
    } else {
      kept.push_back(name);
    }
  }
  std::erase_if(kept, [&](const std::string& name) {
    if (is_of_this_machine(name)) return false;
    if (!now) now = time_in(folder);
    if (!is_abandoned(folder / name, *now)) return false;
    rubbish.push_back(folder / name);
    return true;
  });
  for (const fs::path& path : rubbish) fs::remove_all(path);
  return kept;
}

StagedFolder::StagedFolder(const fs::path& final_name)
    : final_(final_name.has_filename() ? final_name : final_name.parent_path()),  // "new/"
      path_(temporary_name(final_)) {
  try {
    create_folders(folder_of(final_));
    fs::create_directory(path_);
  } catch (const fs::filesystem_error& error) {
    throw Error(concat("cannot create ", final_.string(), ": ", error.code().message()));
  }
  const std::string wanted = final_.filename().string();
  try {
    remove_temporaries(folder_of(final_), [&](std::string_view name) { return name == wanted; });
  } catch (const fs::filesystem_error&) {  // the next one removes them: no reason to fail here
  }
}

StagedFolder::~StagedFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void StagedFolder::commit() {
  sync_folder(path_);
  if (rename(path_.c_str(), final_.c_str()) != 0) fail("rename to", final_);
  sync_folder(folder_of(final_));
}

void remove_folder(const fs::path& folder) {
  const fs::path rubbish = temporary_name(folder);
  if (rename(folder.c_str(), rubbish.c_str()) != 0) {
    if (errno == ENOENT) return;
    fail("remove", folder);
  }
  sync_folder(folder_of(folder));
  fs::remove_all(rubbish);
}

}  // namespace bloomery
