// Where no scheduler sends a signal before the time limit, timeout(1) does.
#pragma once

#include "apps/launch/jobs/script.h"

namespace bloomery {

// mpiexec passes SIGUSR1 on to the ranks; SIGTERM some of them take for themselves.
inline Starters stopped_before_limit(const Job& job, Starters starters) {
  if (job.seconds > 0) {
    const std::string seconds = std::to_string(job.seconds - job.options.grace_seconds);
    const std::string timeout = "timeout --preserve-status --signal=USR1 " + seconds + " \\\n  ";
    starters.per_rank = timeout + starters.per_rank;
    starters.training_per_node = timeout + starters.per_node;
  }
  return starters;
}

}  // namespace bloomery
