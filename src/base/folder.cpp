#include "base/folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
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
  for (const fs::path& path : rubbish) fs::remove_all(path);
  return kept;
}

StagedFolder::StagedFolder(const fs::path& final_name)
    : final_(final_name), path_(temporary_name(final_name)) {
  std::error_code error;
  fs::create_directories(path_, error);
  check(!error, "cannot create ", final_.string(), ": ", error.message());
  const std::string wanted = final_.filename().string();
  remove_temporaries(folder_of(final_), [&](std::string_view name) { return name == wanted; });
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
