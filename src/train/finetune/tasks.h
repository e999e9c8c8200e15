// The data of a task's run, read before it is planned: how long it is follows from them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "config/option_table.h"
#include "samples/tasks/task_data.h"
#include "train/plan/pretrain_options.h"

namespace bloomery {

// Sets the number of iterations to that of --epochs. Adds what the data report to the notes.
std::shared_ptr<const TaskData> read_task(PretrainOptions& options,
                                          std::vector<std::string>& notes);

}  // namespace bloomery
