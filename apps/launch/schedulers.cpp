#include <algorithm>
#include <cstdlib>

#include "apps/launch/environment.h"
#include "apps/launch/local_ranks.h"
#include "apps/launch/remote.h"
#include "base/error.h"

namespace bloomery {
namespace {

const char* name_of(StartProgram program) {
  return program == StartProgram::open_mpi ? "openmpi"
         : program == StartProgram::mpich  ? "mpich"
                                           : "slurm";
}

std::string hosts_of(const StartPlan& plan, bool with_slots) {
  std::string text;
  for (const NodeRanks& node : plan.nodes) {
    text += (text.empty() ? "" : ",") + node.name;
    text += with_slots ? concat(":", node.ranks) : "";
  }
  return text;
}

// These programs give a rank no GPUs of its own; it takes the one of its number on the node.
void check_devices(const RemoteStart& start) {
  for (const NodeRanks& node : start.plan.nodes) {
    for (std::size_t i = 0; i < node.devices.size(); ++i) {
      check(node.devices[i] == std::to_string(i), "--launcher ", name_of(start.options.program),
            " cannot leave out slots of a node (", node.name,
            "): choose whole nodes, or give --launcher ssh or pdsh");
    }
  }
}

int equal_ranks(const RemoteStart& start) {
  const int ranks = start.plan.nodes.front().ranks;
  check(std::ranges::all_of(start.plan.nodes,
                            [&](const NodeRanks& node) { return node.ranks == ranks; }),
        "--launcher ", name_of(start.options.program),
        " wants the same number of ranks on every node: give --num_gpus, or --launcher ssh");
  return ranks;
}

Arguments open_mpi_words(const RemoteStart& start, const Arguments& more) {
  Arguments words = {"mpirun", "-n", std::to_string(start.plan.world_size()), "--host",
                     hosts_of(start.plan, true)};
  words.insert(words.end(), more.begin(), more.end());
  std::vector<std::string> names = carried_names(start.further);
  if (!start.plan.host.empty()) {
    names.insert(names.end(), {"MASTER_ADDR", "MASTER_PORT"});
  }
  for (const std::string& name : names) {  // by name: values would stand on the command line
    words.insert(words.end(), {"-x", name});
  }
  return words;
}

// MPICH carries the whole environment by itself.
Arguments mpich_words(const RemoteStart& start, const Arguments& more) {
  Arguments words = {"mpirun",
                     "-n",
                     std::to_string(start.plan.world_size()),
                     "-ppn",
                     std::to_string(equal_ranks(start)),
                     "-hosts",
                     hosts_of(start.plan, false)};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Arguments slurm_words(const RemoteStart& start, const Arguments& more) {
  Arguments words = {"srun", "--export=ALL", concat("--nodes=", start.plan.nodes.size()),
                     concat("--ntasks=", start.plan.world_size()),
                     concat("--ntasks-per-node=", equal_ranks(start))};
  if (!start.plan.nodes.front().name.empty()) {
    words.push_back("--nodelist=" + hosts_of(start.plan, false));
  }
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

}  // namespace

ChildCommand by_scheduler(const RemoteStart& start) {
  const LaunchOptions& o = start.options;
  check_devices(start);
  const Arguments more = shell_words(o.program_arguments);
  ChildCommand child{.name = o.program == StartProgram::slurm ? "srun" : "mpirun"};
  child.words = o.program == StartProgram::slurm      ? slurm_words(start, more)
                : o.program == StartProgram::open_mpi ? open_mpi_words(start, more)
                                                      : mpich_words(start, more);
  if (!start.plan.host.empty()) {
    check(start.plan.port > 0, "--master_addr needs --master_port, the same port for all ranks");
    child.variables = {{"MASTER_ADDR", start.plan.host},
                       {"MASTER_PORT", std::to_string(start.plan.port)}};
  }
  const Arguments program = program_of(start.command, o);
  child.words.insert(child.words.end(), program.begin(), program.end());
  child.own_terminal = true;
  return child;
}

}  // namespace bloomery
