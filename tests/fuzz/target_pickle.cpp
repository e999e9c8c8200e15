// The pickle of a state dict alone: inside an archive, checksums keep most mutations away from it.
#include "checkpoint/pickle/state_dict.h"
#include "fuzz.h"

namespace bloomery {

void fuzz_input(std::span<const std::byte> input) {
  read_state_dict(read_torch_pickle(input, "fuzz.pkl"), "fuzz.pkl");
}

}  // namespace bloomery
