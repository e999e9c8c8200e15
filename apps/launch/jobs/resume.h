// How a command that was stopped goes on when its job runs again.
#pragma once

#include <string>

#include "apps/common/command.h"

namespace bloomery {

// Whether a command trains, and so has checkpoints.
bool trains(const Arguments& command);

struct Resume {
  std::string save;  // the folder of --save; empty: unknown, or the command does not train
  // Whether --load names another model, and must be turned to `save` once that has a checkpoint.
  bool turns_load = false;
};

// An Error for a command that trains and cannot go on where it stopped.
Resume resume_of(const Arguments& command);

}  // namespace bloomery
