// Which ranks a split puts together, among processes.
#pragma once

#include <cstdint>
#include <vector>

#include "comm/host_group.h"

namespace bloomery {

struct SplitGroup {
  std::uint32_t number = 0;  // that no other group of two of its ranks has
  std::vector<int> members;  // world ranks, by key and then by rank
};

// Collective over `host`, whose ranks are the world ranks `members`. `next_group` is the least
// number that no group of this process has; it is moved on.
SplitGroup split_group(HostGroup& host, const std::vector<int>& members, int color, int key,
                       std::uint32_t& next_group);

}  // namespace bloomery
