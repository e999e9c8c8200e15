// mpirun without a scheduler: a script for bash.
#include "apps/launch/jobs/script.h"
#include "apps/launch/jobs/shell_text.h"
#include "apps/launch/jobs/stop_before_limit.h"
#include "base/error.h"

namespace bloomery {
namespace {

// Open MPI and MPICH write the ranks of a node in two ways.
std::string mpirun_lines(const Job& job) {
  const JobOptions& o = job.options;
  const std::string hosts = o.hostfile.empty() ? "" : "--hostfile " + shell_word(o.hostfile);
  const auto start = [&](const char* name, int ranks) {
    const int total = ranks * o.nodes;
    return concat("  ", name, "=(mpirun -np ", total, " --map-by ppr:", ranks,
                  ":node -x BLOOMERY_SECRET", hosts.empty() ? "" : " ", hosts, ")\n");
  };
  const auto start_mpich = [&](const char* name, int ranks) {
    return concat("  ", name, "=(mpirun -np ", ranks * o.nodes, " -ppn ", ranks,
                  hosts.empty() ? "" : " ", hosts, ")\n");
  };
  const bool by_node = o.process_per == ProcessPer::node;  // then no rank is started by mpirun
  const auto starts = [&](const auto& write) {
    return (by_node ? "" : write("start_ranks", job.ranks)) +
           (by_node || !job.staged.empty() ? write("start_nodes", 1) : "");
  };
  return "if mpirun --version | grep -q 'Open MPI'; then\n" + starts(start) + "else  # MPICH\n" +
         starts(start_mpich) + "fi\n";
}

}  // namespace

std::string mpi_script(const Job& job) {
  const std::string rank = "${OMPI_COMM_WORLD_RANK:-$PMI_RANK}";
  Starters s{.per_rank = "\"${start_ranks[@]}\"",
             .per_node = "\"${start_nodes[@]}\"",
             .rank = rank,
             .node = "\"" + rank + "\"",
             .master_host = job.options.hostfile.empty() ? "hostname"
                                                         : "awk '!/^#/ && NF {print $1; exit}' " +
                                                               shell_word(job.options.hostfile),
             .job_id = "$$",
             .container = container_command(job)};
  return "#!/bin/bash\n" + written_by(job.invocation) +
         "# Run it with bash on the first node. Code 75: it saved and stopped early; run it "
         "again.\n\n" +
         mpirun_lines(job) + script_body(job, stopped_before_limit(job, s)) + "exit \"$code\"\n";
}

}  // namespace bloomery
