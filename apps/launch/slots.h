// Which slots of which hosts a launch uses, as --include and --exclude choose them.
#pragma once

#include <string>
#include <vector>

#include "apps/launch/hosts.h"

namespace bloomery {

// A host with the numbers of its slots, which are its GPUs.
struct NodeSlots {
  std::string name;
  std::vector<std::string> devices;
};

std::vector<NodeSlots> all_slots(const std::vector<HostSlots>& hosts);

// DeepSpeed's syntax: HOST@HOST:SLOT,SLOT. Hosts stay in the order of the hostfile; those without a
// slot are left out. An Error names what is unknown.
std::vector<NodeSlots> included(const std::vector<NodeSlots>& nodes, const std::string& filter);
std::vector<NodeSlots> excluded(const std::vector<NodeSlots>& nodes, const std::string& filter);

// The slots that a filter names for this machine, where nobody knows how many it has.
std::vector<NodeSlots> named_slots(const std::string& filter);

}  // namespace bloomery
