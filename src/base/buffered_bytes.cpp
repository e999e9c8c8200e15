#include "base/buffered_bytes.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace bloomery {
namespace {

constexpr std::size_t kBufferBytes = 1 << 20;

}  // namespace

void BufferedBytes::write(std::span<const std::byte> bytes) {
  size_ += bytes.size();
  if (buffer_.size() + bytes.size() > kBufferBytes) {
    flush();
  }
  if (bytes.size() > kBufferBytes) {
    put(bytes);
  } else {
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
  }
}

void BufferedBytes::flush() {
  put(buffer_);
  buffer_.clear();
}

SpillFile::SpillFile(const std::filesystem::path& beside) : path_(beside) {
  std::string name = beside.string() + ".tmp-XXXXXX";
  descriptor_ = mkostemp(name.data(), O_CLOEXEC);
  check(descriptor_ >= 0, "cannot create ", name, ": ", std::strerror(errno));
  unlink(name.c_str());
}

SpillFile::~SpillFile() { close(descriptor_); }

void SpillFile::put(std::span<const std::byte> bytes) {
  write_whole(descriptor_, bytes.data(), bytes.size(), path_);
}

void SpillFile::read(std::uint64_t offset, std::span<std::byte> to) const {
  read_whole(descriptor_, offset, to.data(), to.size(), path_);
}

}  // namespace bloomery
