// A Wire of TCP sockets between every two ranks.
//
// Whoever waits for pieces also drives the sockets, for all threads of the process. Small messages
// go out at once, and one that nobody waits for yet is kept; large ones are announced, and move
// straight from memory to memory when the receiver asks for them, in chunks, so that others pass.
#pragma once

#include <memory>

#include "comm/tcp/control.h"
#include "comm/wire.h"

namespace bloomery {

// Collective over all ranks of the control plane; `host` is the group of all of them.
std::unique_ptr<Wire> make_tcp_wire(const ControlPlane& control, HostGroup& host);

}  // namespace bloomery
