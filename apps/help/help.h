// Commands about the other commands, all from their option tables.
#pragma once

#include "apps/common/command.h"

namespace bloomery {

int help_command(const Arguments& arguments, std::ostream& out);
int completion(const Arguments& arguments, std::ostream& out);
int man(const Arguments& arguments, std::ostream& out);

}  // namespace bloomery
