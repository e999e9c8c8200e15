// Writes one rank's pieces as one safetensors file, at the speed of the disk: several threads each
// put blocks together, hash them and write them past the page cache.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/manifest.h"
#include "checkpoint/snapshot.h"

namespace bloomery {

struct PieceFileOptions {
  std::uint64_t block_bytes = kDefaultBlockBytes;
  int num_threads = 4;
  bool direct = true;  // past the page cache, where the file system can
};

// Where each piece will lie. Pieces are stored by falling element size, then in the order given, so
// that each is aligned; the size is known before anything is written.
class PieceFile {
 public:
  // `pieces` must stay as they are while this object is used.
  PieceFile(std::string name, const std::vector<SnapshotPiece>& pieces, std::int64_t step);

  const std::string& name() const { return name_; }
  std::uint64_t size() const { return size_; }

  // Creates the file in `folder` and makes it durable. DiskFull when there is no room, other
  // failures are std::runtime_error; the file then remains, to be removed with its folder.
  ManifestPart write(const std::filesystem::path& folder, const PieceFileOptions& options) const;

 private:
  struct Segment {  // bytes of the file, in order and without gaps
    std::uint64_t begin = 0, size = 0;
    const std::byte* data = nullptr;
    const SnapshotPiece* piece = nullptr;  // null: the header
  };
  void assemble(std::uint64_t offset, std::span<std::byte> to) const;
  ManifestPart part() const;

  std::string name_, header_;
  std::vector<Segment> segments_;
  std::uint64_t size_ = 0;
};

}  // namespace bloomery
