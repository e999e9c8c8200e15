// The header of a .npy file.
#include <cstdlib>

#include "corpus/npy.h"
#include "fuzz.h"

namespace bloomery {

void fuzz_input(std::span<const std::byte> input) {
  const NpyHeader header = parse_npy(input, input.size(), "fuzz.npy");
  const std::size_t bytes = static_cast<std::size_t>(header.num_elements()) * size_of(header.type);
  if (header.data_offset + bytes != input.size()) {
    std::abort();  // a reader would leave the file
  }
}

}  // namespace bloomery
