// `bloomery doctor`: what this machine has, what it lacks, and the command that installs it.
#pragma once

#include "apps/common/command.h"

namespace bloomery {

// Exit code 0: everything that this build needs to run here is there; 1: something is wrong.
int doctor(const Arguments& arguments, std::ostream& out);

}  // namespace bloomery
