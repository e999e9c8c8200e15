// What the `checkpoint` commands share.
#pragma once

#include <string>
#include <vector>

#include "checkpoint/folder.h"

namespace bloomery {

// The checkpoints that a path names, by rising step; an Error when there are none.
std::vector<CheckpointEntry> require_checkpoints(const std::string& path);

}  // namespace bloomery
