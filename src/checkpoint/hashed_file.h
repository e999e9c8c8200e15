// One file of a checkpoint, read with its hashes: no byte is given out before the block that it
// lies in was found to be what the manifest says.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/error.h"
#include "base/file.h"
#include "checkpoint/manifest.h"

namespace bloomery {

// The bytes are not what the manifest says, or the disk does not give them.
class UnreadableFile : public Error {
 public:
  using Error::Error;
};

class HashedFile {
 public:
  // Throws an Error when the bytes are not as many as the manifest says.
  HashedFile(std::unique_ptr<const ReadableBytes> bytes, const ManifestFile& file,
             std::uint64_t block_bytes);

  std::int64_t num_blocks() const { return static_cast<std::int64_t>(hashes_.size()); }
  std::uint64_t block_size(std::int64_t block) const;

  // Bytes [offset, offset + to.size()), by any thread. Blocks seen for the first time are read
  // whole and checked; an UnreadableFile names the file and the block.
  void read(std::uint64_t offset, std::span<std::byte> to) const;
  // Reads and checks a block, even when it was seen before. `buffer` has room for it.
  void check_block(std::int64_t block, std::span<std::byte> buffer) const;

 private:
  void read_bytes(std::uint64_t offset, std::span<std::byte> to) const;
  void compare(std::int64_t block, std::span<const std::byte> bytes) const;

  std::unique_ptr<const ReadableBytes> bytes_;
  std::uint64_t block_bytes_;
  std::vector<std::uint64_t> hashes_;
  std::unique_ptr<std::atomic<bool>[]> checked_;  // by block
};

}  // namespace bloomery
