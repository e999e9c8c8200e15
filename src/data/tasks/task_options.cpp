#include "data/tasks/task_options.h"

#include "config/option_table.h"

namespace bloomery {

void describe(OptionTable& t, TaskOptions& o) {
  t.section("tasks");
  t.add("task", o.name,
        "Put a head for this task on a BERT, and tune both: MNLI, QQP, QNLI, RTE, SST-2, CoLA, "
        "MRPC, STS-B or RACE.");
  t.add("train-data", o.train_data, "Files of the task to train on; of RACE folders.");
  t.add("valid-data", o.valid_data,
        "Files of the task, or folders, to evaluate on at the end of every epoch.");
  t.add("keep-last-batch", o.keep_last,
        "Train on the last batch of an epoch although it is incomplete. --keep-last without a "
        "number is this, as in Megatron.");
}

}  // namespace bloomery
