// Options of tasks, with Megatron's names.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "samples/tasks/task_kind.h"

namespace bloomery {

class OptionTable;

// Of a retriever's tuning.
struct QuestionOptions {
  bool with_negatives = false;
  std::int64_t hard_negatives = 0;                           // of a question, in training
  std::int64_t rank_among_hard = 30, rank_among_other = 30;  // of a question, in validation
  std::int64_t length = 256;
  double sample_rate = 1;

  std::int64_t negatives() const { return with_negatives ? hard_negatives : 0; }
};

struct TaskOptions {
  std::string name;                                 // empty: the run is no task's
  std::vector<std::string> train_data, valid_data;  // files, of RACE folders
  bool keep_last = false;  // the last batch of an epoch, which may be incomplete
  std::optional<std::int64_t> evaluation_micro_batch;
  QuestionOptions questions;

  bool enabled() const { return !name.empty(); }
  const TaskKind& kind() const { return find_task(name); }
};

// Without --epochs and --pretrained-checkpoint, which other runs have too.
void describe(OptionTable& table, TaskOptions& options);
// The options that mean something to a retriever's tuning alone.
const std::vector<std::string>& question_option_names();

}  // namespace bloomery
