// Ranks that are processes, connected by TCP.
#pragma once

#include <memory>

#include "comm/communicator.h"
#include "comm/tcp/control.h"

namespace bloomery {

// The communicator of all ranks. Collective over them.
std::unique_ptr<Communicator> make_tcp_communicator(const ControlOptions& options);

}  // namespace bloomery
