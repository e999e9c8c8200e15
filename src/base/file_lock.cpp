#include "base/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/temporary_name.h"

namespace bloomery {

bool means_held(int error, const std::filesystem::path& path) {
  check(
      error == EWOULDBLOCK, "cannot lock ", path.string(), ": ", std::strerror(error),
      ". Without locks another process could write there at the same time; use a folder of a file "
      "system that has them (Lustre: mounted with -o flock)");
  return true;
}

std::string lock_holder(const std::filesystem::path& path) {
  try {
    std::string text = read_file(path);
    text.resize(std::min(text.find('\n'), text.size()));
    return text.empty() ? "another process" : text;
  } catch (const Error&) {
    return "another process";
  }
}

// For writing: NFS gives an exclusive lock for nothing less.
FileLock::FileLock(const std::filesystem::path& path)
    : path_(path), descriptor_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
  check(descriptor_ >= 0, "cannot create the lock file ", path.string(), ": ",
        std::strerror(errno));
}

FileLock::FileLock(const std::filesystem::path& path, const LockWait& wait) : FileLock(path) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + wait.longest;
  constexpr std::chrono::milliseconds kFirst{10}, kLongest{250};
  for (std::chrono::milliseconds pause = kFirst; !take(); pause = std::min(2 * pause, kLongest)) {
    if (pause == kFirst && wait.on_wait) wait.on_wait(lock_holder(path));
    check(Clock::now() < end, "waited ", static_cast<double>(wait.longest.count()) / 1e3, " s for ",
          lock_holder(path), ", which holds ", path.string(), "; end it, or try again later");
    std::this_thread::sleep_for(pause);
  }
}

FileLock::~FileLock() { close(descriptor_); }

std::unique_ptr<FileLock> FileLock::try_lock(const std::filesystem::path& path) {
  for (;;) {
    std::unique_ptr<FileLock> lock(new FileLock(path));
    if (!lock->take()) return nullptr;
    if (lock->is_file_of_path()) return lock;
  }
}

bool FileLock::is_file_of_path() const {
  struct stat opened {
  }, named{};
  return fstat(descriptor_, &opened) == 0 && stat(path_.c_str(), &named) == 0 &&
         opened.st_ino == named.st_ino && opened.st_dev == named.st_dev;
}

bool FileLock::take() {
  while (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EINTR) return !means_held(errno, path_);
  }
  // Only for messages: a disk without room does not matter.
  const std::string text = this_process() + "\n";
  static_cast<void>(!ftruncate(descriptor_, 0) &&
                    pwrite(descriptor_, text.data(), text.size(), 0) > 0);
  return true;
}

}  // namespace bloomery
