// How good the answers to a task are.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "samples/tasks/task_dataset.h"

namespace bloomery {

using TaskOutputs =
    std::vector<float>;  // of a model for one sample: scores of classes, or a number

struct TaskScores {
  std::int64_t correct = 0, total = 0;  // of classes and choices
  double f1 = 0, matthews = 0;          // of two classes
  double pearson = 0, spearman = 0;     // of numbers
  double rank = 0;                      // of passages: how many are thought better, on average
  struct Found {
    std::int64_t most;
    double percent;
  };
  std::vector<Found> found;  // of questions whose passage is among so many best
  double correlation() const { return (pearson + spearman) / 2; }
  double accuracy() const {
    return total > 0 ? static_cast<double>(correct) / static_cast<double>(total) : 0;
  }
  // What epochs are compared by, as GLUE does; what is no number is worse than all others.
  double best_by(TaskMetric metric) const;
};

// The class, or choice, of the largest output; the first of equal ones.
std::int32_t chosen(const TaskOutputs& outputs);

// `outputs` are those of the samples, in order.
TaskScores score(const TaskKind& kind, const TaskSamples& samples,
                 std::span<const TaskOutputs> outputs);

// Of questions: `outputs` are the ranks of their passages, from 0 on.
TaskScores judge_ranks(std::span<const TaskOutputs> outputs, std::span<const std::int64_t> topk);

// Of two columns of equally many numbers, by scipy's definitions; of ranks equal numbers share
// theirs. NaN where a column is constant.
double pearson(std::span<const double> a, std::span<const double> b);
double spearman(std::span<const double> a, std::span<const double> b);

}  // namespace bloomery
