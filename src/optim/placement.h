// Where a tensor of a rank's state lies.
#pragma once

#include <cstdint>

namespace bloomery {

enum class Placement : std::uint8_t {
  device,
  host,  // in its memory
  file,  // mapped by the host (state_files.h)
};

}  // namespace bloomery
