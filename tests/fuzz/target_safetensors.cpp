// A safetensors file: its header, and the bytes of every tensor that was accepted.
#include <cstdlib>

#include "fuzz.h"
#include "tensor/safetensors.h"

namespace bloomery {

void fuzz_input(std::span<const std::byte> input) {
  const MemoryFile memory(as_text(input));
  const SafetensorsFile file(memory.path());
  std::size_t bytes = file.data_offset();
  for (const std::string& name : file.names()) {
    bytes += file.bytes(name).size();
  }
  if (bytes != input.size()) {
    std::abort();  // bytes of no tensor, or of two
  }
}

}  // namespace bloomery
