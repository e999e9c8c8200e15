// The tasks that a BERT, or a retriever of two, is tuned for, by name: what is asked of a sample,
// and how answers are judged.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery {

enum class TaskAnswer {
  classes,  // one of `labels`
  number,
  choice,   // one of the sequences of a sample
  passage,  // one of all those of a batch, which a retriever finds
};

// By which epochs are compared, and which is printed beside the share of right answers.
enum class TaskMetric {
  accuracy,
  f1,           // of the second class
  matthews,     // correlation of two classes
  correlation,  // the mean of Pearson's and Spearman's
  rank,         // of the passage to be found: how many are thought better, on average
};

struct TaskKind {
  std::string_view name;
  TaskAnswer answer = TaskAnswer::classes;
  TaskMetric metric = TaskMetric::accuracy;
  std::span<const std::string_view> labels = {};  // of classes, in order

  // Sequences of a sample.
  int num_sequences() const { return answer == TaskAnswer::choice ? kChoices : 1; }
  static constexpr int kChoices = 4;
};

std::vector<std::string> task_names();
// An Error names the nearest when there is none.
const TaskKind& find_task(std::string_view name);

// What Megatron calls the set that a path names: what follows the task's name, without the ending,
// with dashes, whatever the case of the name; all of a path without it. "GLUE/MNLI/dev_matched.tsv"
// is "dev-matched". Of questions the file's name up to its first dot. It can be part of a file's
// name.
std::string set_name(const TaskKind& task, std::string path);

}  // namespace bloomery
