// Options of tasks, with Megatron's names.
#pragma once

#include <string>
#include <vector>

#include "data/tasks/task_kind.h"

namespace bloomery {

class OptionTable;

struct TaskOptions {
  std::string name;                                 // empty: the run is no task's
  std::vector<std::string> train_data, valid_data;  // files, of RACE folders
  bool keep_last = false;  // the last batch of an epoch, which may be incomplete

  bool enabled() const { return !name.empty(); }
  const TaskKind& kind() const { return find_task(name); }
};

// Without --epochs and --pretrained-checkpoint, which other runs have too.
void describe(OptionTable& table, TaskOptions& options);

}  // namespace bloomery
