// bloomery launch --to SCHEDULER: writes the job file of a command and submits it.
#pragma once

#include <cstddef>
#include <ostream>

#include "apps/common/command.h"

namespace bloomery {

// Whether the flags before the command hold --to.
bool asks_for_job(const Arguments& words);
// Where in these words the command of the ranks begins.
std::size_t start_of_job_command(const Arguments& words);
int job_command(const Arguments& arguments, std::ostream& out);

}  // namespace bloomery
