// Which build of the program this is.
#pragma once

#include <cstdint>

namespace bloomery {

// The beginning of the program's build id, which the linker forms from all that it consists of.
std::uint64_t build_number();

}  // namespace bloomery
