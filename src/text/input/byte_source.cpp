#include "text/input/byte_source.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace bloomery {
namespace {

int open_input(const std::string& path) {
  if (path == "-") {
    return STDIN_FILENO;
  }
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  check(descriptor >= 0, "cannot open ", path, ": ", std::strerror(errno));
  return descriptor;
}

}  // namespace

std::string shown_name(const std::string& path) { return path == "-" ? "standard input" : path; }

FileSource::FileSource(const std::string& path)
    : name_(shown_name(path)), descriptor_(open_input(path)) {
  struct stat status {};
  may_wait_ = fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode);
  if (!may_wait_) {
    posix_fadvise(descriptor_, 0, 0, POSIX_FADV_SEQUENTIAL);
  }
}

FileSource::~FileSource() {
  if (descriptor_ != STDIN_FILENO) {
    close(descriptor_);
  }
}

// Waits in short turns, so that a stop is noticed; false after a stop.
bool FileSource::wait_for_input() const {
  constexpr int kTurnMilliseconds = 50;
  while (stop_ == nullptr || !stop_->load(std::memory_order_relaxed)) {
    pollfd request{descriptor_, POLLIN, 0};
    const int ready = poll(&request, 1, kTurnMilliseconds);
    if (ready > 0 || (ready < 0 && errno != EINTR)) {
      return true;
    }
  }
  return false;
}

std::size_t FileSource::read(std::span<char> to) {
  while (true) {
    if (may_wait_ && !wait_for_input()) {
      return 0;
    }
    const ssize_t count = ::read(descriptor_, to.data(), std::min<std::size_t>(to.size(), 1 << 30));
    if (count >= 0) {
      position_ += static_cast<std::uint64_t>(count);
      return static_cast<std::size_t>(count);
    }
    check(errno == EINTR, "cannot read ", name_, ": ", std::strerror(errno));
  }
}

}  // namespace bloomery
