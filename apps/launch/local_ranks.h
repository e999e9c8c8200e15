// The ranks that a launch starts on its own machine.
#pragma once

#include <vector>

#include "apps/launch/child.h"
#include "apps/launch/plan.h"
#include "apps/launch/rank_logs.h"

namespace bloomery {

// The ranks of one node within a start.
struct NodeStart {
  NodeRanks ranks;
  int node = 0, num_nodes = 1;
  int first_rank = 0, world_size = 1;
  std::string host;  // of rank 0
  int port = 0;
  int listener = -1;  // a socket that waits there already, for rank 0; -1: none
  int attempt = 0;    // how often the ranks were started again
};

// The program of a rank: bloomery's commands are run by this program, Python scripts and modules by
// Python (PYTHON_EXEC), anything else by itself.
Arguments program_of(const Arguments& command, const LaunchOptions& options);

// A misspelled command is an Error before anything starts.
void check_command(const Arguments& command, const LaunchOptions& options);

std::vector<ChildCommand> rank_commands(const NodeStart& start, const Arguments& command,
                                        const LaunchOptions& options, RankLogs& logs);

std::string own_program();

}  // namespace bloomery
