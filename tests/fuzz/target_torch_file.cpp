// Files of torch.save: zip archive, pickle, and the views of storages.
#include "checkpoint/pickle/torch_file.h"
#include "fuzz.h"

namespace bloomery {

void fuzz_input(std::span<const std::byte> input) {
  const TorchFile file(std::make_unique<MemoryBytes>(input, "fuzz.bin"));
  for (const auto& [name, entry] : file.entries()) {
    file.bytes(name);
  }
}

}  // namespace bloomery
