// A communicator of processes over a Wire, for CPU memory; GPU memory passes through pinned host
// memory, and the host waits meanwhile.
//
// A sum is formed by one rank for each element, in rank order, and then spread: the same bits on
// all ranks, and the same as with threads.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "comm/wire.h"
#include "comm/world.h"

namespace bloomery {

// What the communicators of a process share.
struct WireWorld {
  std::shared_ptr<World> world;
  std::shared_ptr<Wire> wire;
  int rank = 0;
  // The control plane of a group of world ranks, by a name that no other group has.
  std::function<std::unique_ptr<HostGroup>(const std::string& name, std::vector<int> members)>
      make_host;
  std::uint32_t next_group = 0;  // that no group of this process has
};

// Of the world ranks `members`, this one among them; `group` as in WireCall.
std::unique_ptr<Communicator> make_wire_communicator(std::shared_ptr<WireWorld> world,
                                                     std::uint32_t group, std::vector<int> members);

}  // namespace bloomery
