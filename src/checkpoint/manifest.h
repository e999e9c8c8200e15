// manifest.json of a checkpoint: what each file is, by blocks, and where each tensor lies. The last
// member is the hash of all text before it, so that no flipped bit of the manifest goes unnoticed.
// docs/formats.md describes the text.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/snapshot.h"

namespace bloomery {

inline constexpr const char* kManifestName = "manifest.json";
inline constexpr int kCheckpointVersion = 1;
inline constexpr std::string_view kTensorsExtension = ".safetensors";  // other files have none
inline constexpr std::uint64_t kDefaultBlockBytes = std::uint64_t{4} << 20;

struct ManifestFile {
  std::string name;  // in the checkpoint's folder
  std::uint64_t size = 0;
  std::vector<std::uint64_t> hashes;  // XXH3-64 of each block; the last block may be shorter

  bool operator==(const ManifestFile&) const = default;
};

struct ManifestPiece {
  int file = 0;              // index in Manifest::files
  std::uint64_t offset = 0;  // of the piece's bytes in the file
  Box box;

  bool operator==(const ManifestPiece&) const = default;
};

struct ManifestTensor {
  DType dtype = DType::fp32;
  Shape shape;
  std::vector<ManifestPiece> pieces;

  std::uint64_t bytes() const { return static_cast<std::uint64_t>(shape.numel()) * size_of(dtype); }
  bool operator==(const ManifestTensor&) const = default;
};

struct Manifest {
  std::string program;  // that wrote it, with version
  RunState state;
  std::uint64_t block_bytes = kDefaultBlockBytes;
  std::vector<ManifestFile> files;
  std::map<std::string, ManifestTensor> tensors;

  std::uint64_t file_bytes() const;  // of all files
  bool operator==(const Manifest&) const = default;
};

std::string manifest_text(const Manifest& manifest);

// Reads and checks everything that can be checked without the files: the hash, every field, that
// pieces lie inside their files and cover each tensor exactly once. `place` starts every message.
Manifest parse_manifest(std::string_view text, const std::string& place);

// What one rank wrote, as text for rank 0, and all ranks' put together. The files keep the order
// of the parts, tensors are merged by name.
struct ManifestPart {
  ManifestFile file;
  std::map<std::string, ManifestTensor> tensors;  // ManifestPiece::file is 0
};
std::string part_text(const ManifestPart& part);
void add_part(Manifest& manifest, std::string_view text, const std::string& place);

}  // namespace bloomery
