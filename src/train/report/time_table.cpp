#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "train/report/trace.h"

namespace bloomery {
namespace {

using RowKey = std::pair<std::string, std::string>;  // name, category
using Rows = std::map<RowKey, TimeRow>;

// Walks the spans of one step in order of their start. The stack holds those that cover the
// present instant, outermost first; each span is cut to the one around it.
class Sweep {
 public:
  Sweep(Rows& rows, const Trace::Step& step) : rows_(rows), at_(step.start), end_(step.end) {}

  void enter(const TraceSpan& span) {
    const std::int64_t start = std::max(span.start, at_);
    leave_until(start);
    TimeRow& row = rows_[{span.name, span.category}];
    ++row.calls;
    const std::int64_t around = open_.empty() ? end_ : open_.back().second;
    open_.emplace_back(&row, std::min(span.end, around));
  }
  // Returns the time that no span covered.
  std::int64_t finish() {
    leave_until(end_);
    return uncovered_;
  }

 private:
  void leave_until(std::int64_t time) {
    while (!open_.empty() && open_.back().second <= time) {
      const auto [row, end] = open_.back();
      advance(end);
      open_.pop_back();
    }
    advance(time);
  }
  void advance(std::int64_t time) {
    if (time <= at_) return;
    (open_.empty() ? uncovered_ : open_.back().first->self_ns) += time - at_;
    at_ = time;
  }

  Rows& rows_;
  std::int64_t at_, end_, uncovered_ = 0;
  std::vector<std::pair<TimeRow*, std::int64_t>> open_;
};

std::vector<TraceSpan> spans_of(const Trace& trace, int lane) {
  std::vector<TraceSpan> spans = trace.spans();
  std::erase_if(spans, [lane](const TraceSpan& span) { return span.lane != lane; });
  // Of spans that start together the longest is the outermost.
  std::stable_sort(spans.begin(), spans.end(), [](const TraceSpan& a, const TraceSpan& b) {
    return std::make_tuple(a.start, -a.end) < std::make_tuple(b.start, -b.end);
  });
  return spans;
}

}  // namespace

double TimeTable::attributed() const {
  if (step_ns == 0) return 1;
  return 1 - static_cast<double>(rows.back().self_ns) / static_cast<double>(step_ns);
}

TimeTable time_table(const Trace& trace, int lane) {
  const std::vector<TraceSpan> spans = spans_of(trace, lane);
  TimeTable table;
  Rows rows;
  TimeRow rest{"(unattributed)", "", 0, 0};
  for (const Trace::Step& step : trace.steps()) {
    if (step.end < step.start) continue;  // not over yet
    Sweep sweep(rows, step);
    for (const TraceSpan& span : spans) {
      if (span.start >= step.end) break;
      if (span.end > step.start) sweep.enter(span);
    }
    rest.self_ns += sweep.finish();
    table.step_ns += step.end - step.start;
    ++table.num_steps;
  }
  for (auto& [key, row] : rows) {
    std::tie(row.name, row.category) = key;
    table.rows.push_back(std::move(row));
  }
  std::stable_sort(table.rows.begin(), table.rows.end(),
                   [](const TimeRow& a, const TimeRow& b) { return a.self_ns > b.self_ns; });
  table.rows.push_back(std::move(rest));
  return table;
}

std::string to_text(const TimeTable& table) {
  const double steps = static_cast<double>(std::max<std::int64_t>(table.num_steps, 1));
  const double all = static_cast<double>(std::max<std::int64_t>(table.step_ns, 1));
  std::size_t width = 16;
  for (const TimeRow& row : table.rows) width = std::max(width, row.name.size());
  const auto line = [&](const std::string& name, const std::string& category, double calls,
                        std::int64_t ns) {
    const double time = static_cast<double>(ns);
    return fmt::format("{:<{}}  {:<12} {:>11.1f} {:>12.3f} {:>7.2f}%\n", name, width, category,
                       calls / steps, time / steps / 1e6, time / all * 100);
  };
  std::string text =
      fmt::format("where the time went, mean of {} step{}\n{:<{}}  {:<12} {:>11} {:>12} {:>8}\n",
                  table.num_steps, table.num_steps == 1 ? "" : "s", "operation", width, "kind",
                  "calls/step", "ms/step", "share");
  double calls = 0;
  for (const TimeRow& row : table.rows) {
    text += line(row.name, row.category, static_cast<double>(row.calls), row.self_ns);
    calls += static_cast<double>(row.calls);
  }
  return text + line("sum", "", calls, table.step_ns);
}

}  // namespace bloomery
