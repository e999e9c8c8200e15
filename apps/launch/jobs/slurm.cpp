// Slurm: a script for sbatch.
#include "apps/launch/jobs/job_time.h"
#include "apps/launch/jobs/script.h"
#include "apps/launch/jobs/shell_text.h"
#include "base/error.h"

namespace bloomery {
namespace {

std::string directives(const Job& job) {
  const JobOptions& o = job.options;
  std::string text;
  const auto add = [&](const auto&... parts) { text += concat("#SBATCH ", parts..., "\n"); };
  add("--job-name=", o.name);
  add("--nodes=", o.nodes);
  add("--ntasks-per-node=", o.process_per == ProcessPer::node ? 1 : job.ranks);
  if (job.gpus > 0) {
    add("--gpus-per-node=", job.gpus);
  }
  if (o.cpus_per_rank > 0) {
    add("--cpus-per-task=", o.cpus_per_rank * (o.process_per == ProcessPer::node ? job.ranks : 1));
  }
  if (job.seconds > 0) {
    add("--time=", clock_text(job.seconds));
  }
  const std::pair<const char*, const std::string*> named[] = {
      {"--partition=", &o.queue}, {"--account=", &o.account}, {"--qos=", &o.qos}};
  for (const auto& [flag, value] : named) {
    if (!value->empty()) {
      add(flag, *value);
    }
  }
  add("--output=%x-%j.log --open-mode=append");
  if (o.grace_seconds > 0) {
    add("--signal=TERM@", o.grace_seconds, "  # seconds before the time limit: save and stop");
  }
  add(o.requeue ? "--requeue  # after a preemption or the loss of a node" : "--no-requeue");
  for (const std::string& directive : split_list(o.directives, ';')) {
    add(directive);
  }
  return text;
}

Starters starters_of(const Job& job) {
  const JobOptions& o = job.options;
  Starters s{.node = "\"$SLURM_NODEID\"",
             .master_host = "scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1",
             .master_port = "$((15000 + SLURM_JOB_ID % 15000))",
             .job_id = "$SLURM_JOB_ID",
             .container = container_command(job)};
  // srun does not take over --cpus-per-task of the job.
  const std::string cpus = o.cpus_per_rank > 0 ? " --cpus-per-task=\"$SLURM_CPUS_PER_TASK\"" : "";
  const std::string ends = " --kill-on-bad-exit=0";
  s.per_rank = "srun" + cpus + ends;
  if (!o.output_folder.empty()) {
    s.per_rank +=
        " --output=" + shell_word(o.output_folder + "/rank-%t.log") + " --open-mode=append";
  }
  s.per_rank += pyxis_flags(job);
  s.per_node = "srun --ntasks=\"$SLURM_NNODES\" --ntasks-per-node=1";
  s.training_per_node = s.per_node + cpus + ends + pyxis_flags(job);
  return s;
}

}  // namespace

std::string slurm_script(const Job& job) {
  return "#!/bin/bash\n" + written_by(job.invocation) +
         "# Submit it with sbatch, in the folder where the command would be typed.\n" +
         directives(job) + "\n" + script_body(job, starters_of(job)) +
         again_lines(job, "scontrol requeue \"$SLURM_JOB_ID\"") + "exit \"$code\"\n";
}

}  // namespace bloomery
