#include "checkpoint/disk.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "base/error.h"

namespace bloomery {
namespace {

[[noreturn]] void fail(const char* action, const std::filesystem::path& path) {
  throw std::runtime_error(
      concat("cannot ", action, " ", path.string(), ": ", std::strerror(errno)));
}

}  // namespace

void sync_folder(const std::filesystem::path& folder) {
  const int descriptor = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) {
    fail("open", folder);
  }
  const int result = fsync(descriptor);
  const int error = errno;
  close(descriptor);
  errno = error;
  if (result != 0 && error != EINVAL) {  // EINVAL: a file system that has nothing to sync
    fail("write to disk", folder);
  }
}

FreeSpace free_space(const std::filesystem::path& folder) {
  struct statvfs status {};
  if (statvfs(folder.c_str(), &status) != 0) {
    fail("ask for the free space of", folder);
  }
  constexpr std::uint64_t kMany = std::numeric_limits<std::uint64_t>::max();
  // Some file systems count no files; they say 0 of 0.
  return {.bytes = static_cast<std::uint64_t>(status.f_bavail) * status.f_frsize,
          .files = status.f_files == 0 ? kMany : status.f_favail};
}

bool rename_or_swap(const std::filesystem::path& from, const std::filesystem::path& to) {
  // The C library's wrapper is newer than some systems; the call itself is from 2014.
  const auto rename2 = [&](unsigned flags) {
    return syscall(SYS_renameat2, AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), flags) == 0;
  };
  if (!std::filesystem::exists(std::filesystem::symlink_status(to))) {
    // rename() itself refuses a folder that is not empty, so a name that appears now is safe too.
    if (rename(from.c_str(), to.c_str()) != 0) {
      fail("rename to", to);
    }
    return true;
  }
  if (rename2(RENAME_EXCHANGE)) {
    return true;
  }
  if (errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP) {
    fail("rename to", to);
  }
  return false;
}

FolderLock::FolderLock(const std::filesystem::path& folder)
    : descriptor_(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (descriptor_ < 0) {
    fail("open", folder);
  }
  held_ = flock(descriptor_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

FolderLock::~FolderLock() { close(descriptor_); }

}  // namespace bloomery
