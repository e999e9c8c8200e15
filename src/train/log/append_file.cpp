#include "train/log/append_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"
#include "base/file.h"

namespace bloomery {

AppendFile::AppendFile(const std::filesystem::path& path, bool fresh) : path_(path) {
  const int flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | (fresh ? O_EXCL : 0);
  descriptor_ = open(path.c_str(), flags, 0666);
  check(descriptor_ >= 0, "cannot write to ", path.string(), ": ", std::strerror(errno));
}

AppendFile::~AppendFile() { close(descriptor_); }

void AppendFile::append(std::string_view bytes) {
  const std::size_t size = bytes.size();
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor_, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      const int error = errno;
      take_back(size - bytes.size());
      errno = error;
      if (means_disk_full(errno)) throw DiskFull(path_, bytes.size());
      throw std::runtime_error(
          concat("cannot write to ", path_.string(), ": ", std::strerror(errno)));
    }
  }
}

void AppendFile::take_back(std::size_t bytes) {
  struct stat status {};
  if (bytes > 0 && fstat(descriptor_, &status) == 0) {
    const int failed = ftruncate(descriptor_, status.st_size - static_cast<off_t>(bytes));
    static_cast<void>(failed);  // then a part of a record remains, which readers recognise
  }
}

void AppendFile::sync() {
  if (fdatasync(descriptor_) != 0 && errno != EINVAL) {
    throw std::runtime_error(concat("cannot sync ", path_.string(), ": ", std::strerror(errno)));
  }
}

}  // namespace bloomery
