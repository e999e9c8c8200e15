// Hands a job file in.
#pragma once

#include <string>

#include "apps/launch/jobs/job.h"

namespace bloomery {

// Runs sbatch, qsub, kubectl or bash on the file, and returns its exit code. An Error where the
// program is not here.
int submit_job(Scheduler scheduler, const std::string& file);

}  // namespace bloomery
