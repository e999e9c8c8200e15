#include "samples/tasks/task_metrics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "base/error.h"

namespace bloomery {
namespace {

double mean(std::span<const double> numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), 0.0) / static_cast<double>(numbers.size());
}

// From 1 on; equal numbers have the mean of their ranks.
std::vector<double> ranks(std::span<const double> numbers) {
  std::vector<std::size_t> order(numbers.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return numbers[i]; });
  std::vector<double> result(numbers.size());
  for (std::size_t begin = 0; begin < order.size();) {
    std::size_t end = begin + 1;
    while (end < order.size() && numbers[order[end]] == numbers[order[begin]]) {
      ++end;
    }
    for (std::size_t i = begin; i < end; ++i) {
      result[order[i]] = static_cast<double>(begin + end + 1) / 2;
    }
    begin = end;
  }
  return result;
}

// Of two classes: how often which was told for which.
struct Confusion {
  double told[2][2] = {};  // by truth, then by answer

  double f1() const {
    const double both = 2 * told[1][1] + told[0][1] + told[1][0];
    return both > 0 ? 2 * told[1][1] / both : 0;
  }
  double matthews() const {
    const double root = std::sqrt((told[1][1] + told[0][1]) * (told[1][1] + told[1][0]) *
                                  (told[0][0] + told[0][1]) * (told[0][0] + told[1][0]));
    return root > 0 ? (told[1][1] * told[0][0] - told[0][1] * told[1][0]) / root : 0;
  }
};

void judge_numbers(const TaskSamples& samples, std::span<const TaskOutputs> outputs,
                   TaskScores& scores) {
  std::vector<double> told, truth;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    told.push_back(outputs[i].at(0));
    truth.push_back(samples[i].score);
  }
  scores.pearson = pearson(told, truth);
  scores.spearman = spearman(told, truth);
}

}  // namespace

double TaskScores::best_by(TaskMetric metric) const {
  double score = accuracy();
  if (metric == TaskMetric::f1) {
    score = (accuracy() + f1) / 2;
  } else if (metric == TaskMetric::matthews) {
    score = matthews;
  } else if (metric == TaskMetric::correlation) {
    score = correlation();
  } else if (metric == TaskMetric::rank) {
    score = -rank;
  }
  return std::isnan(score) ? -std::numeric_limits<double>::infinity() : score;
}

std::int32_t chosen(const TaskOutputs& outputs) {
  return static_cast<std::int32_t>(std::ranges::max_element(outputs) - outputs.begin());
}

TaskScores score(const TaskKind& kind, const TaskSamples& samples,
                 std::span<const TaskOutputs> outputs) {
  check(samples.size() == outputs.size(), "answers for ", outputs.size(), " of ", samples.size(),
        " samples");
  TaskScores scores;
  if (kind.answer == TaskAnswer::number) {
    judge_numbers(samples, outputs, scores);
    return scores;
  }
  Confusion confusion;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    const std::int32_t told = chosen(outputs[i]), truth = samples[i].label;
    scores.correct += told == truth ? 1 : 0;
    if (told < 2 && truth < 2) {
      ++confusion.told[truth][told];
    }
  }
  scores.total = static_cast<std::int64_t>(samples.size());
  scores.f1 = confusion.f1();
  scores.matthews = confusion.matthews();
  return scores;
}

TaskScores judge_ranks(std::span<const TaskOutputs> outputs, std::span<const std::int64_t> topk) {
  TaskScores scores{.total = static_cast<std::int64_t>(outputs.size())};
  const auto all = static_cast<double>(outputs.size());
  for (const TaskOutputs& rank : outputs) {
    scores.rank += rank.at(0) / all;
  }
  for (const std::int64_t most : topk) {
    const auto found = std::ranges::count_if(
        outputs, [&](const TaskOutputs& rank) { return rank.at(0) < static_cast<float>(most); });
    scores.found.push_back({most, 100 * static_cast<double>(found) / all});
  }
  return scores;
}

double pearson(std::span<const double> a, std::span<const double> b) {
  const double mean_a = mean(a), mean_b = mean(b);
  double product = 0, square_a = 0, square_b = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    product += (a[i] - mean_a) * (b[i] - mean_b);
    square_a += (a[i] - mean_a) * (a[i] - mean_a);
    square_b += (b[i] - mean_b) * (b[i] - mean_b);
  }
  return product / std::sqrt(square_a * square_b);
}

double spearman(std::span<const double> a, std::span<const double> b) {
  return pearson(ranks(a), ranks(b));
}

}  // namespace bloomery
