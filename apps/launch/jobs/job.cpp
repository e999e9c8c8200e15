#include "apps/launch/jobs/job.h"

#include <algorithm>
#include <string_view>

#include "apps/bloomery.h"
#include "apps/launch/jobs/job_time.h"
#include "apps/launch/jobs/shell_text.h"
#include "apps/launch/jobs/staging.h"
#include "base/error.h"

namespace bloomery {
namespace {

// An option that only some schedulers have.
struct Place {
  const char* option;
  std::vector<Scheduler> known_to;
  const char* instead;
};

const char* scheduler_name(Scheduler scheduler) {
  constexpr const char* kNames[] = {"slurm", "pbs", "kubernetes", "mpi"};
  return kNames[static_cast<int>(scheduler)];
}

void check_known_options(const OptionTable& table, Scheduler to) {
  using enum Scheduler;
  const Place places[] = {
      {"queue", {slurm, pbs, kubernetes}, "mpirun has no queues"},
      {"account", {slurm, pbs}, "charge the job where it is submitted"},
      {"qos", {slurm}, "choose it by --queue or --directives"},
      {"directives", {slurm, pbs}, "edit the file"},
      {"hostfile", {mpi}, "the scheduler chooses the hosts"},
      {"kind", {kubernetes}, "it is for Kubernetes"},
      {"container-runtime", {slurm, pbs, mpi}, "Kubernetes has its own"},
      {"process-per", {slurm, pbs, mpi}, "a pod starts the ranks of its node"},
      {"requeue", {slurm, pbs, kubernetes}, "run the file again"},
  };
  for (const Place& place : places) {
    check(
        !table.given(place.option) || std::ranges::find(place.known_to, to) != place.known_to.end(),
        table.given_by(place.option), " does not go with --to ", scheduler_name(to), ": ",
        place.instead);
  }
}

// Names of Kubernetes are parts of host names; a pod's name has its number behind.
void check_pod_name(const std::string& name) {
  constexpr std::size_t kLongest = 50;
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  };
  check(!name.empty() && name.size() <= kLongest && std::ranges::all_of(name, fits) &&
            name.front() >= 'a' && name.back() != '-',
        "--job-name '", name, "' is no name of Kubernetes: give at most ", kLongest,
        " small letters, digits and hyphens, a letter first");
}

void check_values(const JobOptions& o) {
  const std::pair<const char*, const std::string*> values[] = {{"--job-name", &o.name},
                                                               {"--queue", &o.queue},
                                                               {"--account", &o.account},
                                                               {"--qos", &o.qos},
                                                               {"--container", &o.container}};
  for (const auto& [option, value] : values) {
    if (!value->empty()) {
      directive_value(option, *value);
    }
  }
  const bool one_line =
      std::ranges::none_of(o.directives, [](char c) { return c >= 0 && c < ' '; });
  check(one_line, "--directives holds a line break: separate directives by semicolons");
  check(o.to != Scheduler::kubernetes || !o.container.empty(),
        "give the image in which the pods run: --container IMAGE");
  check(o.to != Scheduler::mpi || o.nodes == 1 || !o.hostfile.empty(), "--nodes ", o.nodes,
        " with --to mpi needs the names of the nodes: --hostfile FILE");
  check(!o.container.empty() || o.mounts.empty(), "--mounts is for --container IMAGE");
  if (o.to == Scheduler::kubernetes) {
    check_pod_name(o.name);
  }
}

std::vector<Mount> mounts_of(const JobOptions& o) {
  std::vector<Mount> mounts;
  for (const std::string& part : split_list(o.mounts, ',')) {
    const std::size_t colon = part.find(':');
    check(colon != 0 && colon != part.npos && part.find(':', colon + 1) == part.npos &&
              part.substr(colon + 1).starts_with("/"),
          "--mounts '", part, "' is not FROM:TO, where TO is a folder of the container like /data");
    mounts.push_back({part.substr(0, colon), part.substr(colon + 1)});
    directive_value("--mounts", part);
  }
  return mounts;
}

ContainerRuntime runtime_of(const JobOptions& o) {
  check(o.runtime != ContainerRuntime::pyxis || o.to == Scheduler::slurm,
        "Pyxis is part of Slurm: give --container-runtime apptainer or shifter");
  if (o.runtime != ContainerRuntime::automatic) {
    return o.runtime;
  }
  return o.to == Scheduler::slurm ? ContainerRuntime::pyxis : ContainerRuntime::apptainer;
}

void set_ranks(Job& job) {
  const JobOptions& o = job.options;
  check(o.gpus_per_node.has_value(),
        "give the GPUs of a node: --gpus-per-node N, or 0 to train on CPUs");
  job.gpus = *o.gpus_per_node;
  job.ranks = o.ranks_per_node > 0 ? o.ranks_per_node : std::max(1, job.gpus);
  check(job.gpus == 0 || job.ranks <= job.gpus, "--ranks-per-node ", job.ranks,
        " needs as many GPUs, but --gpus-per-node is ", job.gpus);
}

}  // namespace

Job make_job(const OptionTable& table, const JobOptions& options, const Arguments& command,
             const Arguments& invocation) {
  check_known_options(table, options.to);
  check_values(options);
  Job job{.options = options, .command = command, .invocation = invocation};
  set_ranks(job);
  job.seconds = options.time.empty() ? 0 : seconds_of_limit(options.time);
  check(job.seconds == 0 || options.grace_seconds < job.seconds, "--grace-seconds ",
        options.grace_seconds, " is not below the time limit of ", job.seconds, " seconds");
  job.runtime = runtime_of(options);
  job.mounts = mounts_of(options);
  job.staged = staged_paths(options, command);
  if (options.requeue && options.to != Scheduler::mpi) {
    job.resume = resume_of(command);
    check(
        !job.resume.turns_load || options.to != Scheduler::kubernetes,
        "a pod that starts again would train from --load again: give --load the folder of --save, "
        "or --no-requeue");
  }
  return job;
}

}  // namespace bloomery
