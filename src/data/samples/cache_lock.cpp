#include "data/samples/cache_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>
#include <thread>

#include "base/error.h"

namespace bloomery {

CacheLock::CacheLock(const std::filesystem::path& folder, const std::string& name,
                     std::chrono::milliseconds longest, const std::function<void()>& on_wait)
    : path_(folder / ("." + name + ".lock")),
      descriptor_(open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
  check(descriptor_ >= 0, "cannot create the lock file ", path_.string(), ": ",
        std::strerror(errno));
  const auto end = std::chrono::steady_clock::now() + longest;
  for (bool first = true; !take(); first = false) {
    if (first) {
      on_wait();
    }
    check(std::chrono::steady_clock::now() < end, "another process has held ", path_.string(),
          " for ", longest.count() / 1000, " s; end it, or try again later");
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

bool CacheLock::take() {
  while (flock(descriptor_, LOCK_EX | LOCK_NB) != 0) {
    if (errno != EINTR) {
      check(errno == EWOULDBLOCK, "cannot lock ", path_.string(), ": ", std::strerror(errno));
      return false;
    }
  }
  return true;
}

CacheLock::~CacheLock() { close(descriptor_); }

bool is_writable_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  return std::filesystem::is_directory(folder, error) && access(folder.c_str(), W_OK | X_OK) == 0;
}

}  // namespace bloomery
