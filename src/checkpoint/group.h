// How the ranks of a save speak with each other: everyone gives a text and gets all of them.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "comm/communicator.h"

namespace bloomery {

struct SaveGroup {
  int rank = 0, size = 1;
  // Collective: the texts of all ranks, in rank order. Called by the thread that saves.
  std::function<std::vector<std::string>(const std::string& mine)> gather;
};

SaveGroup single_rank_group();

// Over a communicator and a stream that nothing else uses while a save is under way (with
// asynchronous saving: ever), both of which must outlive the group.
SaveGroup communicator_group(Communicator& communicator, Stream& stream);

}  // namespace bloomery
