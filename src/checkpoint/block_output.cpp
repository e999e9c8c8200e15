#include "checkpoint/block_output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <new>

#include "base/file.h"
#include "base/round_up.h"

namespace bloomery {
namespace {

std::size_t aligned(std::size_t bytes) { return round_up(bytes, BlockOutput::kAlignment); }

}  // namespace

BlockOutput::BlockOutput(const std::filesystem::path& path, std::uint64_t size, bool direct)
    : path_(path),
      size_(size),
      descriptor_(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666)) {
  if (descriptor_ < 0) {
    throw_failure("create", path_, size_);
  }
  // Not posix_fallocate, which writes every block where the file system cannot reserve.
  const bool reserved = size == 0 || fallocate(descriptor_, 0, 0, static_cast<off_t>(size)) == 0;
  if (!reserved && errno != EOPNOTSUPP && errno != ENOSYS) {
    const int error = errno;
    close(descriptor_);
    errno = error;
    throw_failure("reserve room for", path_, size_);
  }
  set_direct(direct);
}

BlockOutput::~BlockOutput() { close(descriptor_); }

void BlockOutput::set_direct(bool direct) {
  const int flags = fcntl(descriptor_, F_GETFL);
  const int wanted = direct ? flags | O_DIRECT : flags & ~O_DIRECT;
  direct_ = fcntl(descriptor_, F_SETFL, wanted) == 0 && direct;
}

void BlockOutput::write(std::uint64_t offset, std::span<const std::byte> block, std::size_t size) {
  bool direct = direct_;
  std::size_t done = 0;
  while (done < size) {
    const std::size_t length = direct ? aligned(size) - done : size - done;
    const ssize_t count =
        pwrite(descriptor_, block.data() + done, length, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count < 0 && errno == EINVAL && direct) {  // this file system or disk wants other alignment
      set_direct(false);
      direct = false;
      continue;
    }
    if (count <= 0) {
      throw_failure("write", path_, size_ - offset - done);
    }
    done += static_cast<std::size_t>(count);
    if (done < size && done % kAlignment != 0 && direct) {  // only where room or a limit ends:
      set_direct(false);                                    // the next call says which
      direct = false;
    }
  }
  if (!direct) {  // starts the disk now, so that sync() finds little left to wait for
    sync_file_range(descriptor_, static_cast<off_t>(offset), static_cast<off_t>(size),
                    SYNC_FILE_RANGE_WRITE);
  }
}

void BlockOutput::sync() {
  if (ftruncate(descriptor_, static_cast<off_t>(size_)) != 0 || fsync(descriptor_) != 0) {
    throw_failure("write to disk", path_, size_);
  }
}

void AlignedDelete::operator()(std::byte* memory) const {
  ::operator delete[](memory, std::align_val_t{BlockOutput::kAlignment});
}

AlignedBuffer make_aligned_buffer(std::size_t bytes) {
  return AlignedBuffer(static_cast<std::byte*>(
      ::operator new[](aligned(bytes), std::align_val_t{BlockOutput::kAlignment})));
}

}  // namespace bloomery
