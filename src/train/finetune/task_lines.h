// How a task's scores are reported: Megatron's lines, and the record of an epoch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "samples/tasks/task_metrics.h"

namespace bloomery {

// Before the answers are asked for.
std::string metrics_line(const TaskKind& kind);

// Of one set that took so many seconds.
struct SetScores {
  std::string name;
  TaskScores scores;
};
std::vector<std::string> score_lines(const TaskKind& kind, std::int64_t epoch, const SetScores& set,
                                     double seconds);
// Of all sets that have labels; empty where Megatron has none.
std::string overall_line(const TaskKind& kind, std::int64_t epoch, const TaskScores& scores);

// A JSON object, and back; what is missing is 0.
std::string scores_json(const TaskKind& kind, const TaskScores& scores);
TaskScores read_scores(const std::string& json);

}  // namespace bloomery
