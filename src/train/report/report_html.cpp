#include "train/report/report_html.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/file.h"
#include "train/report/live_line.h"
#include "train/report/plot.h"

namespace bloomery {
namespace {

constexpr const char* kStyle = R"(
:root { color-scheme: light dark; --page: #f6f7f9; --card: #ffffff; --ink: #1c2128; --soft: #667080;
  --rule: #e3e6eb; --c0: #2563eb; --c1: #ea580c; --c2: #0d9488; --floor: #9333ea; }
@media (prefers-color-scheme: dark) { :root { --page: #0f1318; --card: #181d24; --ink: #e6e9ee;
  --soft: #97a1b0; --rule: #2a313b; --c0: #6ea8fe; --c1: #fb9a5b; --c2: #45d0c0; --floor: #c792f5; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
main { max-width: 1360px; margin: 0 auto; padding: 32px 24px 64px; }
h1 { font-size: 26px; margin: 0 0 20px; letter-spacing: -0.01em; }
h2 { font-size: 17px; margin: 36px 0 12px; }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(180px, 1fr)); gap: 12px;
  grid-auto-flow: dense; }
.figure, .plot, .options, .sample { background: var(--card); border: 1px solid var(--rule); border-radius: 10px; }
.figure { padding: 12px 16px; }
.figure.long { grid-column: span 2; }
.figure dt { color: var(--soft); font-size: 13px; }
.figure dd { margin: 2px 0 0; font-size: 19px; font-weight: 600; font-variant-numeric: tabular-nums;
  overflow-wrap: anywhere; }
.plots { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 480px), 1fr)); gap: 16px;
  margin-top: 20px; }
.plot { padding: 12px 16px; min-width: 0; }
.plot.wide { grid-column: 1 / -1; }
.plot h3 { font-size: 15px; margin: 0 0 4px; }
.plot p { color: var(--soft); font-size: 13px; margin: 0 0 4px; }
.narrow { display: none; }
@media (max-width: 620px) { .broad { display: none; } .narrow { display: block; }
  main { padding: 20px 12px 40px; } .plot { padding: 10px 8px; } h1 { font-size: 22px; } .figure { padding: 8px 12px; }
  .figures { grid-template-columns: repeat(auto-fill, minmax(130px, 1fr)); gap: 8px; } .figure dd { font-size: 16px; } }
.legend { display: flex; flex-wrap: wrap; gap: 2px 18px; list-style: none; margin: 0 0 4px; padding: 0; font-size: 13px;
  color: var(--soft); }
.legend li { display: flex; align-items: center; gap: 6px; }
.legend svg { width: 18px; height: 10px; flex: none; }
svg { display: block; width: 100%; height: auto; }
svg text { fill: var(--ink); font-family: inherit; }
.tick, .label { font-size: 12px; font-variant-numeric: tabular-nums; }
svg .tick, svg .label { fill: var(--soft); }
.grid { stroke: var(--rule); }
.axis { stroke: var(--soft); }
path { fill: none; stroke-width: 1.8; stroke-linejoin: round; stroke-linecap: round; }
.c0 { stroke: var(--c0); } .c1 { stroke: var(--c1); } .c2 { stroke: var(--c2); }
.d0 { fill: var(--c0); } .d1 { fill: var(--c1); } .d2 { fill: none; stroke: var(--c2); stroke-width: 1.8; }
.faint { stroke-opacity: 0.3; stroke-width: 1; }
.floor { stroke: var(--floor); stroke-dasharray: 6 5; }
.mark { stroke: var(--soft); stroke-width: 1.2; stroke-dasharray: 3 3; }
.tickmark { stroke: var(--soft); stroke-width: 2.5; stroke-linecap: butt; }
.sample { padding: 12px 16px; margin: 0 0 12px; white-space: pre-wrap; overflow-wrap: anywhere; }
.sample b { color: var(--c0); }
.hover rect { fill: transparent; } .hover circle { fill: none; }
.hover:hover rect { fill: var(--ink); fill-opacity: 0.07; } .hover:hover circle { fill: var(--ink); }
.options { overflow-x: auto; }
.options table { border-collapse: collapse; width: 100%; font-size: 13px; }
.options td { padding: 5px 12px; border-top: 1px solid var(--rule); font-family: ui-monospace, monospace; }
.options tr:first-child td { border-top: 0; }
.options td:first-child { color: var(--soft); width: 1%; white-space: nowrap; }
.options td:last-child { overflow-wrap: anywhere; }
summary { cursor: pointer; font-size: 17px; font-weight: 600; margin: 36px 0 12px; }
footer { color: var(--soft); font-size: 13px; margin-top: 32px; }
)";

PlotSeries series_of(const std::vector<MetricsRow>& rows, MetricsKind kind,
                     const std::string& value, const std::string& name) {
  PlotSeries series;
  series.name = name;
  for (const MetricsRow& row : rows) {
    if (row.kind != kind) continue;
    if (const auto y = row.value(value)) {
      series.points.push_back({static_cast<double>(row.iteration), *y});
    }
  }
  // A run that was resumed by hand may go back; a curve goes forward.
  std::stable_sort(series.points.begin(), series.points.end(),
                   [](const PlotPoint& a, const PlotPoint& b) { return a.x < b.x; });
  series.marked = kind != MetricsKind::train && series.points.size() <= 60;
  return series;
}

// A run falls from its first loss within a few steps: drawn, that cliff would leave no room for the
// rest. Cuts the curve where it comes below the highest loss behind the first twentieth.
std::string cut_cliff(PlotSeries& training) {
  std::vector<PlotPoint>& points = training.points;
  constexpr std::size_t kFewest = 20;
  if (points.size() < kFewest) return "";
  const double behind = points.front().x + (points.back().x - points.front().x) / 20;
  double top = 0;
  for (const PlotPoint& point : points) {
    if (point.x > behind && std::isfinite(point.y)) top = std::max(top, point.y);
  }
  const auto below = std::find_if(points.begin(), points.end(), [top](const PlotPoint& point) {
    return std::isfinite(point.y) && point.y <= top;
  });
  const double first = points.front().y;
  if (below == points.begin() || below == points.end() || !(first > top)) return "";
  const PlotPoint above = *(below - 1);
  if (std::isfinite(above.y)) {  // the curve enters at the top of the picture
    const double part = (above.y - top) / (above.y - below->y);
    *(below - 1) = {above.x + part * (below->x - above.x), top};
    points.erase(points.begin(), below - 1);
  } else {
    points.erase(points.begin(), below);
  }
  return fmt::format("The first iterations, from a loss of {:.4g}, are above the picture.", first);
}

std::vector<PlotMark> marks_of(const std::vector<MetricsRow>& rows) {
  std::vector<PlotMark> marks;
  for (const MetricsRow& row : rows) {
    const auto x = static_cast<double>(row.iteration);
    if (row.kind == MetricsKind::checkpoint) {
      marks.push_back({x, PlotMark::Kind::tick, "checkpoint"});
    } else if (row.kind == MetricsKind::start && row.iteration > 0) {
      marks.push_back({x, PlotMark::Kind::line, "resumed"});
    }
  }
  return marks;
}

Plot loss_plot(const std::vector<MetricsRow>& rows, const RunSummary& summary) {
  Plot plot;
  plot.title = "Loss";
  plot.x_title = "iteration";
  plot.logarithmic = true;
  for (const auto& [kind, name] :
       {std::pair{MetricsKind::train, "training"}, std::pair{MetricsKind::validation, "validation"},
        std::pair{MetricsKind::test, "test"}}) {
    PlotSeries series = series_of(rows, kind, "lm_loss", name);
    if (series.points.empty()) series = series_of(rows, kind, "dpo_loss", name);
    if (kind == MetricsKind::train) plot.note = cut_cliff(series);
    if (!series.points.empty()) plot.series.push_back(std::move(series));
  }
  if (summary.entropy_floor) {
    plot.level = PlotLevel{fmt::format("entropy floor {:.4f}", *summary.entropy_floor),
                           *summary.entropy_floor};
  }
  plot.marks = marks_of(rows);
  return plot;
}

// Spikes that would flatten everything else are better shown by their order of magnitude.
bool spreads_widely(const PlotSeries& series) {
  std::vector<double> values;
  for (const PlotPoint& point : series.points) {
    if (std::isfinite(point.y)) values.push_back(point.y);
  }
  if (values.empty()) return false;
  std::sort(values.begin(), values.end());
  return values.front() > 0 && values.back() > 20 * values[values.size() / 2];
}

// 2.00k as 2k: ticks are round.
std::string short_tick(double value) {
  std::string text = short_count(value);
  const std::size_t point = text.find('.'), digits = text.find_first_not_of("0123456789.");
  if (point == text.npos) return text;
  const std::size_t end = digits == text.npos ? text.size() : digits;
  std::size_t last = end;
  while (text[last - 1] == '0') --last;
  return text.erase(last == point + 1 ? point : last, end - (last == point + 1 ? point : last));
}

std::vector<Plot> other_plots(const std::vector<MetricsRow>& rows) {
  std::vector<Plot> plots;
  const auto add = [&](const std::string& title, const std::vector<PlotSeries>& all) {
    Plot plot;
    plot.title = title;
    plot.x_title = "iteration";
    for (const PlotSeries& series : all) {
      if (!series.points.empty()) plot.series.push_back(series);
    }
    if (!plot.series.empty()) plots.push_back(std::move(plot));
    return !all.empty() && !plots.empty() && plots.back().title == title;
  };
  const auto train = [&rows](const char* value, const char* name) {
    return series_of(rows, MetricsKind::train, value, name);
  };
  if (add("Learning rate", {train("learning_rate", "learning rate")})) {
    plots.back().from_zero = true;
  }
  const PlotSeries norm = train("grad_norm", "gradient norm");
  if (add("Gradient norm", {norm})) {
    plots.back().logarithmic = spreads_widely(norm);
    plots.back().from_zero = true;
  }
  if (add("Throughput (tokens per second)", {train("tokens_per_second", "tokens per second")})) {
    plots.back().from_zero = true;
    plots.back().y_tick = short_tick;
  }
  if (add("Memory (GiB)",
          {train("reserved_bytes", "reserved"), train("allocated_bytes", "in tensors")})) {
    Plot& plot = plots.back();
    for (PlotSeries& series : plot.series) {
      for (PlotPoint& point : series.points) point.y /= 1073741824.0;
    }
    plot.from_zero = true;
    plot.y_text = [](double gib) { return fmt::format("{:.3f} GiB", gib); };
  }
  const PlotSeries scale = train("loss_scale", "loss scale");
  const bool changes = std::any_of(scale.points.begin(), scale.points.end(),
                                   [&](const auto& p) { return p.y != scale.points.front().y; });
  if (changes && add("Loss scale", {scale})) plots.back().logarithmic = true;
  return plots;
}

std::string figures_html(const ArgumentList& figures) {
  std::string html;
  for (const auto& [name, value] : figures) {
    constexpr std::size_t kLong = 24;  // more than a card's width of letters
    html += fmt::format("<div class=\"figure{}\"><dt>{}</dt><dd>{}</dd></div>\n",
                        value.size() > kLong ? " long" : "", escaped(name), escaped(value));
  }
  return html.empty() ? "" : "<dl class=\"figures\">\n" + html + "</dl>\n";
}

std::string plots_html(const std::vector<MetricsRow>& rows, const RunSummary& summary) {
  constexpr PlotSize kWide{1060, 320}, kHalf{520, 280};  // one or two beside each other
  std::string html = "<div class=\"plots\">\n<div class=\"plot wide\">" +
                     plot_html(loss_plot(rows, summary), kWide) + "</div>\n";
  for (const Plot& plot : other_plots(rows)) {
    html += "<div class=\"plot\">" + plot_html(plot, kHalf) + "</div>\n";
  }
  return html + "</div>\n";
}

std::string samples_html(const ArgumentList& samples) {
  std::string html;
  for (const auto& [prompt, text] : samples) {
    html += fmt::format("<p class=\"sample\"><b>{}</b>{}</p>\n", escaped(prompt), escaped(text));
  }
  return html.empty() ? "" : "<h2>What the model writes</h2>\n" + html;
}

// A table under a title that opens it.
std::string table_html(const char* title, bool open, const std::string& lines) {
  if (lines.empty()) return "";
  return fmt::format(
      "<details{}><summary>{}</summary><div "
      "class=\"options\"><table>\n{}</table></div></details>\n",
      open ? " open" : "", title, lines);
}

}  // namespace

std::string report_html(const std::vector<MetricsRow>& rows, const RunSummary& summary) {
  std::string events, options;
  for (const RunEvent& event : summary.events) {
    events += fmt::format("<tr><td>{}</td><td>iteration {}: {}</td></tr>\n", event.time,
                          event.iteration, escaped(event.what));
  }
  for (const auto& [name, value] : summary.options) {
    options += fmt::format("<tr><td>{}</td><td>{}</td></tr>\n", escaped(name), escaped(value));
  }
  return fmt::format(
             "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
             "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
             "<title>{0}</title>\n<style>{1}</style>\n</head>\n<body>\n<main>\n<h1>{0}</h1>\n",
             escaped(summary.title), kStyle) +
         figures_html(summary.figures) + plots_html(rows, summary) + samples_html(summary.samples) +
         table_html("History", true, events) + table_html("Options", false, options) +
         "<footer>Drawn from metrics.jsonl. Point at a curve to read its values.</footer>\n"
         "</main>\n</body>\n</html>\n";
}

std::filesystem::path write_report(const std::filesystem::path& folder) {
  const auto from = folder / "metrics.jsonl", to = folder / "report.html";
  check(std::filesystem::exists(from), "there is no ", from.string(),
        "; give the folder of a training run, its --save or else its --tensorboard-dir");
  const MetricsHistory history = read_metrics(from);
  write_file(to, report_html(history.rows, run_summary(history.rows)));
  return to;
}

}  // namespace bloomery
