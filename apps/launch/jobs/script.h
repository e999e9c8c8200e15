// What the scripts for Slurm, PBS and mpirun have in common: staging, resuming and the command.
#pragma once

#include <string>

#include "apps/launch/jobs/job.h"

namespace bloomery {

// Shell text by which a scheduler's script starts processes.
struct Starters {
  std::string per_rank, per_node;
  std::string training_per_node;  // per_node of the command itself; empty: the same
  std::string rank, node;         // number of a process, in its own environment
  std::string master_host;        // a command that prints where rank 0 is
  std::string master_port = "29500";
  std::string job_id;
  std::string container;  // what stands before the command to run it in the container
};

// From the secret of the start to the command and `code=$?`.
std::string script_body(const Job& job, const Starters& starters);
// Behind it: the command that lets the job run again, and when. Empty with --no-requeue.
std::string again_lines(const Job& job, const std::string& command);

// Apptainer or Shifter before a command; empty without a container.
std::string container_command(const Job& job);
// Pyxis' flags of srun; empty for another runtime.
std::string pyxis_flags(const Job& job);

}  // namespace bloomery
