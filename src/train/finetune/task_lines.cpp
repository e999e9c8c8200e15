#include "train/finetune/task_lines.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "train/report/status_lines.h"

namespace bloomery {
namespace {

using Json = nlohmann::ordered_json;
constexpr std::string_view kTop = "top", kAccuracy = "_acc";

std::string found_name(const TaskScores::Found& found) {
  return fmt::format("{}{}{}", kTop, found.most, kAccuracy);
}

std::vector<std::string> rank_lines(std::int64_t epoch, const TaskScores& s, double seconds) {
  std::string line = fmt::format("epoch:{}|rank = {:.2f}", epoch, s.rank);
  for (const TaskScores::Found& each : s.found) {
    line += fmt::format("|{} = {:.2f}", found_name(each), each.percent);
  }
  return {line, fmt::format("taken time to calcuate metrics {:.3f}", seconds)};  // as it is written
}

}  // namespace

std::string metrics_line(const TaskKind& kind) {
  return kind.answer == TaskAnswer::passage ? "calculating metrics by accuracy func in ORQA..."
                                            : "calculating metrics ...";
}

std::vector<std::string> score_lines(const TaskKind& kind, std::int64_t epoch, const SetScores& set,
                                     double seconds) {
  const TaskScores& s = set.scores;
  if (kind.answer == TaskAnswer::passage) {
    return rank_lines(epoch, s, seconds);
  }
  const auto line = [&](const std::string& metric) {
    return fmt::format(" > |epoch: {}| metrics for {}: {} elapsed time (sec): {:.3f}", epoch,
                       set.name, metric, seconds);
  };
  if (kind.metric == TaskMetric::correlation) {
    return {line(fmt::format("pearson = {} spearmanr = {} corr = {}", python_float(s.pearson),
                             python_float(s.spearman), python_float(s.correlation())))};
  }
  std::vector<std::string> lines = {line(fmt::format("correct / total = {} / {} = {:.4f} %,",
                                                     s.correct, s.total, s.accuracy() * 100))};
  if (kind.metric == TaskMetric::matthews) {
    lines.push_back(line(fmt::format("mcc = {} ,", python_float(s.matthews))));
  } else if (kind.metric == TaskMetric::f1) {
    lines.push_back(line(fmt::format("f1 = {} ,", python_float(s.f1))));
  }
  return lines;
}

std::string overall_line(const TaskKind& kind, std::int64_t epoch, const TaskScores& scores) {
  if (kind.answer == TaskAnswer::passage) {
    return "";
  }
  return fmt::format(" >> |epoch: {}| overall: correct / total = {} / {} = {:.4f} %", epoch,
                     scores.correct, scores.total, scores.accuracy() * 100);
}

std::string scores_json(const TaskKind& kind, const TaskScores& scores) {
  if (kind.answer == TaskAnswer::number) {
    return Json{{"pearson", scores.pearson}, {"spearman", scores.spearman}}.dump();
  }
  if (kind.answer == TaskAnswer::passage) {
    Json json = {{"rank", scores.rank}, {"total", scores.total}};
    for (const TaskScores::Found& each : scores.found) {
      json[found_name(each)] = each.percent;
    }
    return json.dump();
  }
  Json json = {{"correct", scores.correct}, {"total", scores.total}};
  if (kind.metric == TaskMetric::f1) {
    json["f1"] = scores.f1;
  } else if (kind.metric == TaskMetric::matthews) {
    json["mcc"] = scores.matthews;
  }
  return json.dump();
}

TaskScores read_scores(const std::string& json) {
  const Json set = Json::parse(json);
  TaskScores scores{.correct = set.value("correct", std::int64_t{0}),
                    .total = set.value("total", std::int64_t{0}),
                    .f1 = set.value("f1", 0.0),
                    .matthews = set.value("mcc", 0.0),
                    .pearson = set.value("pearson", 0.0),
                    .spearman = set.value("spearman", 0.0),
                    .rank = set.value("rank", 0.0)};
  for (const auto& [name, percent] : set.items()) {
    if (name.starts_with(kTop) && name.ends_with(kAccuracy)) {
      scores.found.push_back({std::stoll(name.substr(kTop.size())), percent.get<double>()});
    }
  }
  return scores;
}

}  // namespace bloomery
