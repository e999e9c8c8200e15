// Every command of the program, in the groups in which help shows them.
#pragma once

#include <vector>

#include "apps/common/command.h"

namespace bloomery {

struct CommandGroup {
  const char* title;
  std::vector<Command> commands;
};

std::vector<CommandGroup> command_groups();
// Scripts of Megatron and DeepSpeed under their own names.
std::vector<Command> compatible_commands();

// Those of all groups, then the compatible ones.
std::vector<Command> all_commands();

}  // namespace bloomery
