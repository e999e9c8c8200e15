#include "data/samples/cache_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>

#include "base/error.h"

namespace bloomery {

CacheLock::CacheLock(const std::filesystem::path& folder, const std::string& name)
    : path_(folder / (name + ".lock")),
      descriptor_(open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
  while (descriptor_ >= 0 && flock(descriptor_, LOCK_EX) != 0 && errno == EINTR) {
  }
}

CacheLock::~CacheLock() {
  if (descriptor_ >= 0) {
    // Whoever waits holds this same file and goes on when it closes; whoever comes later makes a
    // new one and finds the finished files.
    unlink(path_.c_str());
    close(descriptor_);
  }
}

bool is_writable_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  return std::filesystem::is_directory(folder, error) && access(folder.c_str(), W_OK | X_OK) == 0;
}

}  // namespace bloomery
