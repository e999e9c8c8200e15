#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"

namespace bloomery {
namespace {

void check_call(bool success, const char* action, const std::filesystem::path& path) {
  if (!success) {
    throw Error(concat("cannot ", action, " ", path.string(), ": ", std::strerror(errno)));
  }
}

// A file descriptor that closes itself.
class Descriptor {
 public:
  Descriptor(const std::filesystem::path& path, int flags)
      : number_(open(path.c_str(), flags | O_CLOEXEC)) {
    check_call(number_ >= 0, "open", path);
  }
  ~Descriptor() { close(number_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  operator int() const { return number_; }

 private:
  int number_;
};

std::size_t regular_file_size(int descriptor, const std::filesystem::path& path) {
  struct stat status {};
  check_call(fstat(descriptor, &status) == 0, "inspect", path);
  check(S_ISREG(status.st_mode), path.string(), " is not a regular file");
  return static_cast<std::size_t>(status.st_size);
}

}  // namespace

std::string read_file(const std::filesystem::path& path) {
  const Descriptor file(path, O_RDONLY);
  std::string text;
  char buffer[1 << 16];
  while (true) {
    const ssize_t count = read(file, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) {
      continue;
    }
    check_call(count >= 0, "read", path);
    if (count == 0) {
      return text;
    }
    text.append(buffer, static_cast<std::size_t>(count));
  }
}

MappedFile::MappedFile(const std::filesystem::path& path) : path_(path) {
  const Descriptor file(path, O_RDONLY);
  size_ = regular_file_size(file, path);
  if (size_ > 0) {  // an empty mapping is an error to the kernel
    void* mapped = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
    check_call(mapped != MAP_FAILED, "map", path);
    data_ = static_cast<const std::byte*>(mapped);
  }
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) {
    munmap(const_cast<std::byte*>(data_), size_);
  }
}

AtomicFile::AtomicFile(const std::filesystem::path& path) : path_(path) {
  static std::atomic<unsigned> count = 0;  // several threads may write files at once
  temporary_ = path_;
  temporary_ += concat(".tmp-", getpid(), "-", count++);
  descriptor_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  check_call(descriptor_ >= 0, "create", temporary_);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) {
    close(descriptor_);
    unlink(temporary_.c_str());
  }
}

void AtomicFile::write(const void* data, std::size_t bytes) {
  check(descriptor_ >= 0, path_.string(), " was already committed");
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t count = ::write(descriptor_, from, std::min<std::size_t>(bytes, 1 << 30));
    if (count < 0 && errno == EINTR) {
      continue;
    }
    check_call(count >= 0, "write", temporary_);
    from += count;
    bytes -= static_cast<std::size_t>(count);
  }
}

void AtomicFile::commit() {
  check(descriptor_ >= 0, path_.string(), " was already committed");
  check_call(fsync(descriptor_) == 0, "write to disk", temporary_);
  check_call(rename(temporary_.c_str(), path_.c_str()) == 0, "rename to", path_);
  close(std::exchange(descriptor_, -1));
  const std::filesystem::path folder = path_.has_parent_path() ? path_.parent_path() : ".";
  const Descriptor parent(folder, O_RDONLY | O_DIRECTORY);  // makes the new name durable
  check_call(fsync(parent) == 0, "write to disk", folder);
}

}  // namespace bloomery
