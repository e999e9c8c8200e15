#include "samples/tasks/task_kind.h"

#include <algorithm>

#include "base/error.h"
#include "config/nearest.h"

namespace bloomery {
namespace {

constexpr std::string_view kInference[] = {"contradiction", "entailment", "neutral"};
constexpr std::string_view kEntailment[] = {"entailment", "not_entailment"};
constexpr std::string_view kBinary[] = {"0", "1"};

constexpr TaskKind kTasks[] = {
    {"MNLI", TaskAnswer::classes, TaskMetric::accuracy, kInference},
    {"QQP", TaskAnswer::classes, TaskMetric::f1, kBinary},
    {"QNLI", TaskAnswer::classes, TaskMetric::accuracy, kEntailment},
    {"RTE", TaskAnswer::classes, TaskMetric::accuracy, kEntailment},
    {"SST-2", TaskAnswer::classes, TaskMetric::accuracy, kBinary},
    {"CoLA", TaskAnswer::classes, TaskMetric::matthews, kBinary},
    {"MRPC", TaskAnswer::classes, TaskMetric::f1, kBinary},
    {"STS-B", TaskAnswer::number, TaskMetric::correlation},
    {"RACE", TaskAnswer::choice, TaskMetric::accuracy},
    {"RET-FINETUNE-NQ", TaskAnswer::passage, TaskMetric::rank},
};

char lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c; }

// Where the last mention of a task in a path ends; 0: there is none. Folders are called MNLI, mnli
// or Mnli; in other letters than the task's own it begins a word: the rte of "sorted" is none.
std::size_t end_of_name(std::string_view path, std::string_view name) {
  if (const std::size_t at = path.rfind(name); at != path.npos) return at + name.size();
  const auto same_letter = [](char a, char b) { return lower(a) == lower(b); };
  for (std::size_t end = path.size(); end >= name.size(); --end) {
    const std::size_t begin = end - name.size();
    const char before = begin == 0 ? '/' : lower(path[begin - 1]);
    const bool begins_word = before < 'a' || before > 'z';
    if (begins_word && std::ranges::equal(path.substr(begin, name.size()), name, same_letter)) {
      return end;
    }
  }
  return 0;
}

}  // namespace

std::vector<std::string> task_names() {
  std::vector<std::string> names;
  for (const TaskKind& task : kTasks) {
    names.emplace_back(task.name);
  }
  return names;
}

const TaskKind& find_task(std::string_view name) {
  for (const TaskKind& task : kTasks) {
    if (task.name == name) {
      return task;
    }
  }
  std::string all;
  for (const std::string& each : task_names()) {
    all += (all.empty() ? "" : ", ") + each;
  }
  throw Error(concat("there is no task '", name, "'", suggestion(std::string(name), task_names()),
                     "; those to tune for are ", all));
}

std::string set_name(const TaskKind& task, std::string path) {
  if (task.answer == TaskAnswer::passage) {
    path.erase(0, path.rfind('/') + 1);
    return path.substr(0, path.find('.'));
  }
  path.erase(0, end_of_name(path, task.name));
  constexpr std::string_view kEnding = ".tsv";
  if (path.ends_with(kEnding)) {
    path.erase(path.size() - kEnding.size());
  }
  path.erase(0, std::min(path.find_first_not_of("/._-"), path.size()));
  path.erase(path.find_last_not_of('/') + 1);
  std::ranges::replace(path, '/', '-');
  if (task.answer != TaskAnswer::choice) {
    std::ranges::replace(path, '_', '-');
  }
  return path;
}

}  // namespace bloomery
