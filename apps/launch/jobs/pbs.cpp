// PBS: a script for qsub, with the mpiexec of Cray PALS or MPICH.
#include <algorithm>

#include "apps/launch/jobs/job_time.h"
#include "apps/launch/jobs/script.h"
#include "apps/launch/jobs/shell_text.h"
#include "apps/launch/jobs/stop_before_limit.h"
#include "base/error.h"

namespace bloomery {
namespace {

std::string directives(const Job& job) {
  const JobOptions& o = job.options;
  std::string text;
  const auto add = [&](const auto&... parts) { text += concat("#PBS ", parts..., "\n"); };
  add("-N ", o.name);
  const std::string gpus = job.gpus > 0 ? concat(":ngpus=", job.gpus) : "";
  const std::string cpus =
      o.cpus_per_rank > 0 ? concat(":ncpus=", o.cpus_per_rank * job.ranks) : "";
  add("-l select=", o.nodes, cpus, gpus);
  add("-l place=scatter");
  if (job.seconds > 0) {
    add("-l walltime=", clock_text(job.seconds));
  }
  if (!o.queue.empty()) {
    add("-q ", o.queue);
  }
  if (!o.account.empty()) {
    add("-A ", o.account);
  }
  add("-j oe");
  add("-r ", o.requeue ? "y" : "n");
  for (const std::string& directive : split_list(o.directives, ';')) {
    add(directive);
  }
  return text;
}

Starters starters_of(const Job& job) {
  const JobOptions& o = job.options;
  Starters s{.rank = "${PALS_RANKID:-$PMI_RANK}",
             .node = "\"${PALS_RANKID:-$PMI_RANK}\"",
             .master_host = "head -n 1 \"$PBS_NODEFILE\"",
             .job_id = "$PBS_JOBID",
             .container = container_command(job)};
  const std::string hosts = " --hostfile \"$PBS_NODEFILE\"";
  const std::string depth =
      o.cpus_per_rank > 0 ? concat(" --cpu-bind depth -d ", o.cpus_per_rank) : std::string();
  s.per_rank = concat("mpiexec -n ", job.world_size(), " --ppn ", job.ranks, hosts, depth);
  s.per_node = concat("mpiexec -n ", o.nodes, " --ppn 1", hosts);
  return s;
}

}  // namespace

std::string pbs_script(const Job& job) {
  return "#!/bin/bash -l\n" + written_by(job.invocation) +
         "# Submit it with qsub, in the folder where the command would be typed.\n" +
         directives(job) + "\ncd \"$PBS_O_WORKDIR\" || exit 1\n" +
         script_body(job, stopped_before_limit(job, starters_of(job))) +
         again_lines(job, "qsub \"$0\"") + "exit \"$code\"\n";
}

}  // namespace bloomery
