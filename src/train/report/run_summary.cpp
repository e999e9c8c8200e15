#include "train/report/run_summary.h"

#include <algorithm>
#include <cmath>
#include <ctime>

#include "base/error.h"
#include "train/report/live_line.h"

namespace bloomery {
namespace {

constexpr std::size_t kCheckpointsShown = 8;

// Empty where a row has no time.
std::string time_of(const MetricsRow& row) {
  return row.time > 0 && row.time < 1e12 ? local_time(static_cast<std::time_t>(row.time)) : "";
}

const MetricsRow* last_of(const std::vector<MetricsRow>& rows, MetricsKind kind) {
  const auto found = std::find_if(rows.rbegin(), rows.rend(),
                                  [kind](const MetricsRow& row) { return row.kind == kind; });
  return found == rows.rend() ? nullptr : &*found;
}

std::size_t count_of(const std::vector<MetricsRow>& rows, MetricsKind kind) {
  return static_cast<std::size_t>(std::count_if(
      rows.begin(), rows.end(), [kind](const MetricsRow& row) { return row.kind == kind; }));
}

// Between each start and the last row of its process; time in which nothing ran does not count.
double seconds_at_work(const std::vector<MetricsRow>& rows) {
  double sum = 0, last = std::nan("");
  for (const MetricsRow& row : rows) {
    if (row.kind == MetricsKind::sample) continue;  // may come long after the end
    if (row.kind != MetricsKind::start && row.time > last) sum += row.time - last;
    last = row.time;
  }
  return sum;
}

std::vector<RunEvent> events_of(const std::vector<MetricsRow>& rows) {
  std::vector<RunEvent> events;
  const std::size_t checkpoints = count_of(rows, MetricsKind::checkpoint);
  std::size_t number = 0;
  for (const MetricsRow& row : rows) {
    const auto add = [&](const std::string& what) {
      events.push_back({time_of(row), row.iteration, what});
    };
    if (row.kind == MetricsKind::start) {
      const std::string device = row.text("device");
      add(concat(row.iteration == 0 ? "started" : "resumed", device.empty() ? "" : " on ", device));
    } else if (row.kind == MetricsKind::checkpoint && ++number + kCheckpointsShown > checkpoints) {
      add("checkpoint");
    }
  }
  return events;
}

// What is trained on.
std::optional<double> loss_of(const MetricsRow& row) {
  const std::optional<double> loss = row.value("lm_loss");
  return loss ? loss : row.value("dpo_loss");
}

std::optional<double> best_loss(const std::vector<MetricsRow>& rows, MetricsKind kind) {
  std::optional<double> best;
  for (const MetricsRow& row : rows) {
    const double loss = row.kind == kind ? loss_of(row).value_or(std::nan("")) : std::nan("");
    if (std::isfinite(loss)) best = std::min(best.value_or(loss), loss);
  }
  return best;
}

ArgumentList figures_of(const std::vector<MetricsRow>& rows, const MetricsRow* start) {
  ArgumentList figures;
  const auto add = [&figures](const char* name, const auto& value) {
    figures.emplace_back(name, concat(value));
  };
  const auto add_loss = [&](const char* name, const MetricsRow* row) {
    const std::optional<double> loss = row == nullptr ? std::nullopt : loss_of(*row);
    if (loss && std::isfinite(*loss)) add(name, *loss);
  };
  double skipped = 0, fastest = 0;
  std::int64_t tokens = 0;
  for (const MetricsRow& row : rows) {
    tokens = std::max(tokens, row.tokens);
    skipped += row.value("skipped_iterations").value_or(0);
    fastest = std::fmax(fastest, row.value("tokens_per_second").value_or(0));
  }
  const std::optional<double> asked =
      start == nullptr ? std::nullopt : start->value("train_iterations");
  add("iterations", concat(rows.back().iteration, asked ? concat(" of ", *asked) : ""));
  add("tokens", short_count(static_cast<double>(tokens)));
  add_loss("training loss", last_of(rows, MetricsKind::train));
  add_loss("validation loss", last_of(rows, MetricsKind::validation));
  if (count_of(rows, MetricsKind::validation) > 1) {
    if (const auto best = best_loss(rows, MetricsKind::validation))
      add("best validation loss", *best);
  }
  add_loss("test loss", last_of(rows, MetricsKind::test));
  if (fastest > 0) add("best tokens/s", short_count(fastest));
  if (skipped > 0) add("skipped iterations", skipped);
  add("time at work", short_duration(seconds_at_work(rows)));
  if (const std::string last = time_of(rows.back()); !last.empty()) add("as of", last);
  if (const std::size_t saved = count_of(rows, MetricsKind::checkpoint)) add("checkpoints", saved);
  if (start != nullptr && !start->text("device").empty()) add("device", start->text("device"));
  return figures;
}

}  // namespace

RunSummary run_summary(const std::vector<MetricsRow>& rows) {
  RunSummary summary;
  const MetricsRow* start = last_of(rows, MetricsKind::start);
  summary.title = start == nullptr ? "" : start->text("title");
  if (summary.title.empty()) summary.title = "Training run";
  if (rows.empty()) return summary;
  summary.figures = figures_of(rows, start);
  summary.events = events_of(rows);
  const MetricsRow* sample = last_of(rows, MetricsKind::sample);
  for (const MetricsRow& row : rows) {
    if (row.kind == MetricsKind::sample && row.iteration == sample->iteration) {
      summary.samples.emplace_back(row.text("prompt"), row.text("text"));
    }
  }
  if (start != nullptr) {
    summary.options = start->options;
    summary.entropy_floor = start->value("loss_floor");
  }
  return summary;
}

}  // namespace bloomery
