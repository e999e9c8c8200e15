// A new file of known size, written in large blocks at any place by several threads.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace bloomery {

class BlockOutput {
 public:
  static constexpr std::size_t kAlignment = 4096;  // of memory and offsets for direct writes

  // Creates the file and reserves its room. DiskFull when there is none.
  BlockOutput(const std::filesystem::path& path, std::uint64_t size, bool direct);
  ~BlockOutput();
  BlockOutput(const BlockOutput&) = delete;
  BlockOutput& operator=(const BlockOutput&) = delete;

  // Writes `size` bytes at `offset`, a multiple of kAlignment. `block` is aligned and goes on,
  // with bytes that do not matter, to a multiple of kAlignment.
  void write(std::uint64_t offset, std::span<const std::byte> block, std::size_t size);
  void sync();  // all of it is on disk, with the right length

  bool direct() const { return direct_; }

 private:
  void set_direct(bool direct);

  std::filesystem::path path_;
  std::uint64_t size_;
  int descriptor_ = -1;
  std::atomic<bool> direct_ = false;
};

// Memory aligned for direct writes.
struct AlignedDelete {
  void operator()(std::byte* memory) const;
};
using AlignedBuffer = std::unique_ptr<std::byte[], AlignedDelete>;
AlignedBuffer make_aligned_buffer(std::size_t bytes);

}  // namespace bloomery
