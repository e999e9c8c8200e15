// Starts the ranks of a plan, and starts them again after a failure.
#pragma once

#include <memory>
#include <optional>

#include "apps/launch/remote.h"
#include "apps/launch/rendezvous.h"
#include "apps/launch/watch.h"

namespace bloomery {

class Starter {
 public:
  Starter(const LaunchOptions& options, StartPlan plan, Arguments command);

  int run();  // the exit code of the launch

 private:
  WatchEnd start_once(int attempt);
  WatchEnd start_at_meeting(int attempt);
  WatchEnd start_node(int attempt);        // the one of this launch
  WatchEnd start_all_nodes(int attempt);   // here and by ssh
  WatchEnd start_by_program(int attempt);  // pdsh, mpirun, srun
  bool is_here(const NodeRanks& node) const;
  NodeStart meeting_place(const StartPlan& plan) const;  // where rank 0 is reached
  Arguments command_of(int attempt) const;

  const LaunchOptions options_;
  const StartPlan plan_;
  const Arguments command_;
  Variables further_;  // of .deepspeed_env
  std::optional<RankLogs> logs_;
  std::unique_ptr<Meeting> meeting_;
};

// The command with which training goes on from its --save folder, if a checkpoint is there;
// otherwise the same command.
Arguments resuming(const Arguments& command);

}  // namespace bloomery
