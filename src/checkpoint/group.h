// How the ranks of a save exchange messages: each gives a text and gets all of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "comm/host_group.h"

namespace bloomery {

struct SaveGroup {
  int rank = 0, size = 1;
  // Collective: the texts of all ranks, in rank order. Called by the thread that saves. What a rank
  // waits for are disks, which have no deadline.
  std::function<std::vector<std::string>(const std::string& mine)> gather;
  // The same, but only rank 0 gets the texts, and the others get none. Null: gather() serves.
  std::function<std::vector<std::string>(std::string mine)> gather_at_first = nullptr;
};

SaveGroup single_rank_group();

// Of the ranks of `host`, which must outlive the group. One rank alone needs nobody, so that its
// save goes on whatever becomes of other ranks.
SaveGroup save_group(HostGroup& host);

}  // namespace bloomery
