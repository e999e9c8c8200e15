#include <array>

#include "base/findings.h"
#include "config/json_fields.h"
#include "samples/curriculum/batches.h"

namespace bloomery {
namespace {

using Kind = DifficultySchedule::Kind;

template <class E>
E one_of(const JsonFields& fields, const char* name,
         std::initializer_list<std::pair<const char*, E>> words) {
  const auto word = fields.get<std::string>(name);
  std::string known;
  for (const auto& [text, value] : words) {
    if (word == text) {
      return value;
    }
    known += concat(known.empty() ? "" : ", ", text);
  }
  fields.require(false, name, " is ", word, ", not one of ", known);
  return words.begin()->second;
}

DifficultySchedule schedule_of(const JsonFields& fields) {
  DifficultySchedule s;
  s.kind = one_of<Kind>(fields, "schedule_type",
                        {{"fixed_linear", Kind::fixed_linear},
                         {"fixed_root", Kind::fixed_root},
                         {"fixed_discrete", Kind::fixed_discrete}});
  s.min = fields.count("min_difficulty");
  s.max = fields.count("max_difficulty");
  const auto config = fields.get<JsonFields>("schedule_config");
  if (s.kind == Kind::fixed_discrete) {
    s.difficulties = config.get<std::vector<std::int64_t>>("difficulty");
    s.last_steps = config.get<std::vector<std::int64_t>>("max_step");
  } else {
    s.total_steps = config.count("total_curriculum_step");
    s.difficulty_step = config.count("difficulty_step");
    s.root = s.kind == Kind::fixed_root ? config.get<double>("root_degree") : 1;
  }
  return s;
}

CurriculumMetric metric_of(const std::string& name, const JsonFields& fields) {
  CurriculumMetric metric;
  metric.name = name;
  metric.schedule = schedule_of(fields);
  const std::vector<std::string> wrong = problems(metric.schedule, fields.place());
  check(wrong.empty(), wrong.empty() ? "" : wrong.front());
  metric.percentile =
      one_of<bool>(fields, "difficulty_type", {{"value", false}, {"percentile", true}});
  metric.clusters = one_of<bool>(fields, "clustering_type",
                                 {{"single_cluster", false}, {"schedule_based", true}});
  if (metric.clusters) {
    metric.index_to_sample_path = fields.get<std::string>("index_to_sample_path");
    metric.index_to_metric_path = fields.find<std::string>("index_to_metric_path").value_or("");
    fields.require(metric.percentile || !metric.index_to_metric_path.empty(),
                   "difficulty_type value needs index_to_metric_path");
  }
  return metric;
}

}  // namespace

std::vector<CurriculumMetric> curriculum_metrics(const std::string& json) {
  const std::string place = "curriculum_metrics";
  check(!json.empty(), place, ": data_sampling.curriculum_learning needs metrics");
  const JsonFields all(json, place);
  std::vector<CurriculumMetric> metrics;
  for (const auto& [name, fields] : all.members<JsonFields>()) {
    metrics.push_back(metric_of(name, fields));
  }
  check(!metrics.empty(), place, ": data_sampling.curriculum_learning needs at least one metric");
  return metrics;
}

}  // namespace bloomery
