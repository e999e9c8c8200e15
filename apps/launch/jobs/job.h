// What a job file is written from: `bloomery launch --to slurm|pbs|kubernetes|mpi COMMAND`.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "apps/common/command.h"
#include "apps/launch/jobs/resume.h"
#include "config/option_table.h"

namespace bloomery {

enum class Scheduler { slurm, pbs, kubernetes, mpi };
enum class ProcessPer { rank, node };
enum class ContainerRuntime { automatic, pyxis, apptainer, shifter };
enum class KubernetesKind { job, jobset, pytorchjob };

struct JobOptions {
  Scheduler to = Scheduler::slurm;
  std::string output;
  bool submit = false;
  std::string name = "bloomery";
  int nodes = 1;
  std::optional<int> gpus_per_node;
  int ranks_per_node = 0, cpus_per_rank = 0;
  ProcessPer process_per = ProcessPer::rank;
  std::string time, queue, account, qos, directives, hostfile;
  int grace_seconds = 120;
  bool requeue = true;
  std::string container, mounts;
  ContainerRuntime runtime = ContainerRuntime::automatic;
  KubernetesKind kind = KubernetesKind::job;
  std::string stage, stage_folder = "/tmp";
  std::string output_folder;
};

void describe(OptionTable& t, JobOptions& o);

struct Mount {
  std::string from, to;
};

// The options with what follows from them. Every value can be written.
struct Job {
  JobOptions options;
  Arguments command;     // of a rank
  Arguments invocation;  // the words behind `bloomery launch`, for the file's comment
  int gpus = 0;          // per node
  int ranks = 1;         // per node
  int seconds = 0;       // the time limit; 0: the scheduler's
  ContainerRuntime runtime = ContainerRuntime::automatic;  // never that where a container is given
  std::vector<Mount> mounts;
  std::vector<std::string> staged;  // paths, or prefixes of corpora
  Resume resume;                    // empty where the job does not run again

  int world_size() const { return ranks * options.nodes; }
};

// An Error that names what is missing, contradictory or not to be expressed for this scheduler.
Job make_job(const OptionTable& table, const JobOptions& options, const Arguments& command,
             const Arguments& invocation);

std::string slurm_script(const Job& job);
std::string pbs_script(const Job& job);
std::string mpi_script(const Job& job);
std::string kubernetes_manifest(const Job& job);

}  // namespace bloomery
