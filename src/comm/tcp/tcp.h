// Ranks that are processes, connected by TCP.
#pragma once

#include <memory>

#include "comm/communicator.h"
#include "comm/tcp/control.h"
#include "comm/wire_communicator.h"

namespace bloomery {

// The communicator of all ranks of the control plane. Collective over them.
std::unique_ptr<Communicator> make_tcp_communicator(const std::shared_ptr<ControlPlane>& control);
// What it needs besides a wire.
std::shared_ptr<WireWorld> make_wire_world(const std::shared_ptr<ControlPlane>& control);

}  // namespace bloomery
