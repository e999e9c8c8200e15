// `--micro-batch-size auto`: the largest micro-batch that fits into the memory that there is.
#pragma once

#include <string>
#include <vector>

#include "comm/host_group.h"
#include "train/plan/what_fits.h"

namespace bloomery {

// Replaces the word by the smallest number. True: it was there.
bool take_auto_micro_batch(std::vector<std::string>& arguments);

// Of ranks that are processes: each has measured its own device; the least counts for all.
Room smallest_room(HostGroup& host, Room own);

// Sets the micro-batch and says to what; the global batch, which must have been given, stays.
std::string choose_micro_batch(PretrainOptions& options, const Room& room);

}  // namespace bloomery
