// What starts ranks on other machines: a launch there, by ssh or pdsh, or the ranks themselves, by
// mpirun or srun.
#pragma once

#include <vector>

#include "apps/launch/child.h"
#include "apps/launch/options.h"
#include "apps/launch/plan.h"

namespace bloomery {

// What all nodes of a start share.
struct RemoteStart {
  const LaunchOptions& options;
  const StartPlan& plan;
  const Arguments& command;
  std::string host;  // of rank 0
  int port = 0;
  std::string log_prefix;
  Variables further;  // that go to other machines whatever their names
  int attempt = 0;    // how often the ranks were started again
};

// One of the nodes, by ssh. Variables go by its standard input.
ChildCommand by_ssh(const RemoteStart& start, int node);

// All nodes. Variables are in `variables_file`, since pdsh passes no input on.
ChildCommand by_pdsh(const RemoteStart& start, const std::string& variables_file);

// All ranks, by Open MPI's or MPICH's mpirun or by srun, which carry the environment.
ChildCommand by_scheduler(const RemoteStart& start);

// For each node whether ssh reaches it. This machine always answers.
std::vector<bool> answering(const LaunchOptions& options, const std::vector<NodeRanks>& nodes);

// The words of a line by a shell's rules of quotation.
std::vector<std::string> shell_words(const std::string& text);

}  // namespace bloomery
