// Clocks of different machines.
#pragma once

#include <cstdint>

#include "comm/host_group.h"

namespace bloomery {

// How many nanoseconds this rank's steady clock is ahead of the first rank's: 0 on the same
// machine, elsewhere as exact as messages are fast. Collective.
std::int64_t ahead_of_first(HostGroup& host);

}  // namespace bloomery
