// A socket between every two ranks.
#pragma once

#include <vector>

#include "comm/tcp/control.h"

namespace bloomery {

// By rank; none for this one. Collective over `host`, the group of all ranks of the control plane.
std::vector<Socket> connect_all(const ControlPlane& control, HostGroup& host);

}  // namespace bloomery
