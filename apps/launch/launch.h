// bloomery launch: starts a command as several ranks, here and on other machines, and ends with
// them.
#pragma once

#include "apps/common/command.h"

namespace bloomery {

// Where in the words behind `launch` the command of its ranks begins: after its flags, each with a
// value, or after "--".
std::size_t start_of_command(const Arguments& words);
int launch_command(const Arguments& arguments, std::ostream& out);

}  // namespace bloomery
