// manifest.json of a checkpoint. The input is the text before the hash that ends a manifest, which
// is added here: with a wrong one nothing behind it would be reached.
#include <cstdlib>

#include "base/hash.h"
#include "checkpoint/boxes.h"
#include "checkpoint/manifest.h"
#include "fuzz.h"

namespace bloomery {

void fuzz_input(std::span<const std::byte> input) {
  std::string text(as_text(input));
  const std::string hash = hash_text(xxh3(text));
  text += ",\n \"manifest_xxh3\": \"" + hash + "\"\n}\n";
  const Manifest manifest = parse_manifest(text, "manifest.json");
  for (const auto& [name, tensor] : manifest.tensors) {
    for (const ManifestPiece& piece : tensor.pieces) {
      const std::uint64_t size = manifest.files.at(static_cast<std::size_t>(piece.file)).size;
      const auto bytes =
          static_cast<std::uint64_t>(piece.box.extent.numel()) * size_of(tensor.dtype);
      if (piece.offset > size || bytes > size - piece.offset) {
        std::abort();  // a reader would leave the file
      }
    }
  }
  if (!(parse_manifest(manifest_text(manifest), "again") == manifest)) {
    std::abort();
  }
}

}  // namespace bloomery
