// Reads and writes of large ranges of files in blocks, many at a time: by io_uring where the kernel
// has it, else by threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace bloomery {

// What O_DIRECT asks of offsets, sizes and addresses.
inline constexpr std::size_t kDirectAlignment = 4096;

struct BlockIoOptions {
  std::size_t block_bytes = std::size_t{1} << 20;  // a multiple of kDirectAlignment
  int queue_depth = 16;                            // blocks under way at a time
  int threads = 2;                                 // without io_uring
  bool use_uring = true;                           // if the kernel has it
};

// A file without a name, which goes when the process does, however that ends.
class ScratchFile {
 public:
  // Takes so many bytes in the folder, which must be there: an Error if its disk has no room.
  ScratchFile(const std::string& folder, std::size_t bytes);
  ~ScratchFile();
  ScratchFile(const ScratchFile&) = delete;
  ScratchFile& operator=(const ScratchFile&) = delete;

  int descriptor() const { return descriptor_; }
  const std::string& folder() const { return folder_; }
  bool direct() const { return direct_; }  // past the cache of the system
  // Through that cache from now on: what an odd file system may want.
  void leave_direct();

 private:
  std::string folder_;
  int descriptor_ = -1;
  bool direct_ = false;
};

// For one thread at a time.
class BlockIo {
 public:
  explicit BlockIo(const BlockIoOptions& options);
  ~BlockIo();

  enum class Direction { read, write };
  // Returns when all is done; an Error says what the disk said. Of files past the cache, offset,
  // bytes and memory are multiples of kDirectAlignment.
  void transfer(ScratchFile& file, Direction direction, std::uint64_t offset, void* memory,
                std::size_t bytes);

  const char* method() const;  // "io_uring" or "threads"

 private:
  class Method;
  class Ring;
  class Threads;
  BlockIoOptions options_;
  std::unique_ptr<Method> method_;
};

}  // namespace bloomery
