// bloomery launch: starts a command as several ranks, here and on other machines, and ends with
// them.
#pragma once

#include "apps/common/command.h"
#include "comm/start/start.h"

namespace bloomery {

int launch_command(const Arguments& arguments, std::ostream& out);

// Whether a command that was started alone in a pod is to run as several ranks there: the pod has
// several GPUs, or PET_NPROC_PER_NODE asks for it.
bool divides_pod(const StartFacts& facts);

}  // namespace bloomery
