// How the ranks of a save speak with each other: everyone gives a text and gets all of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "comm/host_group.h"

namespace bloomery {

struct SaveGroup {
  int rank = 0, size = 1;
  // Collective: the texts of all ranks, in rank order. Called by the thread that saves.
  std::function<std::vector<std::string>(const std::string& mine)> gather;
};

SaveGroup single_rank_group();

// Of the ranks of `host`, which must outlive the group.
SaveGroup save_group(HostGroup& host);

}  // namespace bloomery
