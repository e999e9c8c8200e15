// BLOOMERY_DRY_RUN=1: what a shim would start, without starting it.
#pragma once

#include "apps/shims/launcher_call.h"
#include "apps/shims/translate.h"

namespace bloomery {

bool is_dry_run(const Variables& variables);

// GPUs of a machine in a dry run: BLOOMERY_DRY_RUN_GPUS, else 8.
int dry_run_gpus(const Variables& variables);

// A command by itself, or as one rank of those that srun or mpirun started: the first one plans for
// all, the others do nothing.
ShimTarget dry_command(const std::string& command, const Arguments& arguments,
                       const Variables& variables);

// A command that a launcher would start as several ranks.
ShimTarget dry_launch(const LauncherCall& call, const std::string& command,
                      const Variables& variables);

}  // namespace bloomery
