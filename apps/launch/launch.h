// bloomery launch: starts a command as several ranks, here and on other machines, and ends with
// them.
#pragma once

#include "apps/common/command.h"

namespace bloomery {

int launch_command(const Arguments& arguments, std::ostream& out);

}  // namespace bloomery
