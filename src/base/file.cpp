#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/folder.h"
#include "base/temporary_name.h"

namespace bloomery {
namespace {

void check_call(bool success, const char* action, const std::filesystem::path& path) {
  if (!success) {
    throw Error(concat("cannot ", action, " ", path.string(), ": ", std::strerror(errno)));
  }
}

// For faults of the machine rather than of the input.
void check_machine(bool success, const char* action, const std::filesystem::path& path) {
  if (!success) throw_failure(action, path);
}

// Where the kernel shows an open file, so that a file without a name can be given one.
std::string link_of(int descriptor) { return concat("/proc/self/fd/", descriptor); }

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

// A file without a name, of which nothing remains however the process ends; -1 where the file
// system has none, or could not give it a name later.
int open_nameless(const std::filesystem::path& folder) {
  const int descriptor = open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
  if (descriptor >= 0 && access(link_of(descriptor).c_str(), F_OK) != 0) {
    close(descriptor);
    return -1;
  }
  return descriptor;
}

}  // namespace

std::string read_file(const std::filesystem::path& path) {
  const Descriptor file(path, O_RDONLY);
  std::string text;
  struct stat status {};
  if (fstat(file, &status) == 0 && S_ISREG(status.st_mode)) {
    text.reserve(static_cast<std::size_t>(status.st_size));
  }
  char buffer[1 << 16];
  while (true) {
    const ssize_t count = read(file, buffer, sizeof(buffer));
    if (count < 0 && errno == EINTR) continue;
    check_call(count >= 0, "read", path);
    if (count == 0) return text;
    text.append(buffer, static_cast<std::size_t>(count));
  }
}

FileText::FileText(const std::filesystem::path& path) {
  const Descriptor file(path, O_RDONLY);
  struct stat status {};
  if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
    const auto size = static_cast<std::size_t>(status.st_size);
    void* const mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
    if (mapped != MAP_FAILED) {
      mapped_ = mapped;
      text_ = {static_cast<const char*>(mapped), size};
      return;
    }
  }
  read_ = read_file(path);
  text_ = read_;
}

FileText::~FileText() {
  if (mapped_ != nullptr) munmap(mapped_, text_.size());
}

InputFile::InputFile(const std::filesystem::path& path)
    : path_(path), descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
  check_call(descriptor_ >= 0, "open", path);
  try {
    size_ = regular_file_size(descriptor_, path);
  } catch (...) {
    close(descriptor_);
    throw;
  }
}

InputFile::~InputFile() { close(descriptor_); }

void InputFile::read(std::uint64_t offset, void* to, std::size_t bytes) const {
  read_whole(descriptor_, offset, to, bytes, path_);
}

void MemoryBytes::read(std::uint64_t offset, void* to, std::size_t bytes) const {
  check(offset <= bytes_.size() && bytes <= bytes_.size() - offset, name_, " ends at byte ",
        bytes_.size());
  if (bytes > 0) std::memcpy(to, bytes_.data() + offset, bytes);
}

bool means_disk_full(int error) {
  return error == ENOSPC || error == EDQUOT || error == EFBIG;  // the last: a limit on file sizes
}

DiskFull::DiskFull(const std::filesystem::path& path, std::uint64_t missing)
    : runtime_error(concat("no space left for ", path.string(), ": ",
                           missing > 0 ? concat(missing, " more bytes are needed; ") : "",
                           "make room or write elsewhere")) {}

void throw_failure(const char* action, const std::filesystem::path& path, std::uint64_t missing) {
  if (means_disk_full(errno)) throw DiskFull(path, missing);
  throw std::runtime_error(
      concat("cannot ", action, " ", path.string(), ": ", std::strerror(errno)));
}

void write_whole(int descriptor, const void* data, std::size_t bytes,
                 const std::filesystem::path& path) {
  const char* from = static_cast<const char*>(data);
  while (bytes > 0) {
    const ssize_t count = ::write(descriptor, from, std::min<std::size_t>(bytes, 1 << 30));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_failure("write", path, bytes);
    from += count;
    bytes -= static_cast<std::size_t>(count);
  }
}

void read_whole(int descriptor, std::uint64_t offset, void* to, std::size_t bytes,
                const std::filesystem::path& path) {
  char* target = static_cast<char*>(to);
  while (bytes > 0) {
    const ssize_t count = pread(descriptor, target, std::min<std::size_t>(bytes, 1 << 30),
                                static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_failure("read", path);
    check(count > 0, path.string(), " ends at byte ", offset, ", ", bytes,
          " bytes short: was it changed while in use?");
    target += count;
    offset += static_cast<std::uint64_t>(count);
    bytes -= static_cast<std::size_t>(count);
  }
}

void write_file(const std::filesystem::path& path, std::string_view text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

AtomicFile::AtomicFile(const std::filesystem::path& path) : path_(path) {
  const std::filesystem::path folder = folder_of(path);
  check(std::filesystem::is_directory(folder), "cannot write ", path.string(), ": ",
        folder.string(), " is not a folder; create it first");
  descriptor_ = open_nameless(folder);
  if (descriptor_ >= 0) return;
  do {
    temporary_ = temporary_name(path_);
    descriptor_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  } while (descriptor_ < 0 && errno == EEXIST);
  check_call(descriptor_ >= 0, "create", temporary_);
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) {
    close(descriptor_);
    if (!temporary_.empty()) unlink(temporary_.c_str());
  }
}

void AtomicFile::write(const void* data, std::size_t bytes) {
  check(descriptor_ >= 0, path_.string(), " was already committed");
  write_whole(descriptor_, data, bytes, path_);
}

void AtomicFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  check(descriptor_ >= 0, path_.string(), " was already committed");
  while (!bytes.empty()) {
    const ssize_t count =
        pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) throw_failure("write", path_, bytes.size());
    offset += static_cast<std::uint64_t>(count);
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void AtomicFile::sync() {
  check(descriptor_ >= 0, path_.string(), " was already committed");
  check_machine(fsync(descriptor_) == 0, "write to disk", path_);
  if (temporary_.empty()) name_temporarily();
}

// A link cannot replace a file and a rename can, hence the name in between.
void AtomicFile::name_temporarily() {
  std::filesystem::path name;
  int result = 0;
  do {
    name = temporary_name(path_);
    result =
        linkat(AT_FDCWD, link_of(descriptor_).c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW);
  } while (result != 0 && errno == EEXIST);
  check_machine(result == 0, "name", name);
  temporary_ = std::move(name);
}

void AtomicFile::commit() {
  sync();
  check_machine(rename(temporary_.c_str(), path_.c_str()) == 0, "rename to", path_);
  close(std::exchange(descriptor_, -1));
  sync_folder(folder_of(path_));
}

}  // namespace bloomery
