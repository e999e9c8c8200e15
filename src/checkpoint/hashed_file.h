// One file of a checkpoint, read with its hashes: no byte is returned before its block was found to
// be what the manifest says.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "checkpoint/manifest.h"
#include "checkpoint/stored_file.h"

namespace bloomery {

// A file that gives out no byte which it has not found to be good.
class CheckedFile {
 public:
  virtual ~CheckedFile() = default;
  virtual std::int64_t num_blocks() const = 0;
  // Bytes [offset, offset + to.size()), by any thread; a DamagedFile says what is damaged.
  virtual void read(std::uint64_t offset, std::span<std::byte> to) const = 0;
  // Reads and checks a block, even when it was seen before. `buffer` has room for a block of the
  // manifest.
  virtual void check_block(std::int64_t block, std::span<std::byte> buffer) const = 0;
};

class HashedFile final : public CheckedFile {
 public:
  // Throws a DamagedFile when the bytes are not as many as the manifest says.
  HashedFile(std::unique_ptr<const ReadableBytes> bytes, const ManifestFile& file,
             std::uint64_t block_bytes);

  std::int64_t num_blocks() const override { return static_cast<std::int64_t>(hashes_.size()); }
  std::uint64_t block_size(std::int64_t block) const;

  // Blocks seen for the first time are read whole and checked.
  void read(std::uint64_t offset, std::span<std::byte> to) const override;
  void check_block(std::int64_t block, std::span<std::byte> buffer) const override;

 private:
  void compare(std::int64_t block, std::span<const std::byte> bytes) const;

  std::unique_ptr<const ReadableBytes> bytes_;
  std::uint64_t block_bytes_;
  std::vector<std::uint64_t> hashes_;
  std::unique_ptr<std::atomic<bool>[]> checked_;  // by block
};

}  // namespace bloomery
