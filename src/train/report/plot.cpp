#include "train/report/plot.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/number_text.h"

namespace bloomery {
namespace {

constexpr PlotSize kNarrow{370, 240};
constexpr double kLeft = 52, kRight = 16, kTop = 8, kBottom = 40;  // around the curves
constexpr std::size_t kBuckets = 500;  // two points each and both ends: 1,002 at most
constexpr std::size_t kMeans = 250;    // stretches of x in a smoothed curve
constexpr int kStrips = 100;           // stretches of x with a hover title of their own

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void include(double value) {
    if (!std::isfinite(value)) return;
    low = std::min(low, value);
    high = std::max(high, value);
  }
  bool empty() const { return !(low <= high); }
};

std::string short_number(double value) {
  if (value == 0) return "0";
  const double size = std::abs(value);
  if (size >= 1e-3 && size < 1e5) return fmt::format("{:.6g}", value);
  return fmt::format("{:.3g}", value);
}

// 20000 as 20,000.
std::string step_text(double value) {
  const bool whole = std::trunc(value) == value && std::abs(value) < 1e15;
  return whole ? grouped(static_cast<std::int64_t>(value)) : short_number(value);
}

class Frame {
 public:
  Frame(const Plot& plot, const PlotSize& size) : plot_(plot), size_(size) {
    for (const PlotSeries& series : plot.series) {
      for (const PlotPoint& point : series.points) {
        if (!std::isfinite(point.y)) continue;
        x_.include(point.x);
        y_.include(point.y);
      }
    }
    if (empty()) return;
    logarithmic_ = plot.logarithmic && y_.low > 0 && (!plot.level || plot.level->y > 0);
    if (plot.level) y_.include(plot.level->y);
    if (plot.from_zero && !logarithmic_) y_.include(0);
    if (x_.low == x_.high) x_ = {x_.low - 1, x_.high + 1};
    pad();
  }

  bool empty() const { return y_.empty(); }
  const Range& x_range() const { return x_; }
  double right() const { return size_.width - kRight; }
  double bottom() const { return size_.height - kBottom; }
  double x(double value) const {
    return kLeft + (value - x_.low) / (x_.high - x_.low) * (right() - kLeft);
  }
  double y(double value) const {
    const double part = (scaled(value) - scaled(y_.low)) / (scaled(y_.high) - scaled(y_.low));
    return bottom() - part * (bottom() - kTop);
  }
  std::vector<double> x_ticks() const {
    return round_ticks(x_.low, x_.high, size_.width > 450 ? 7 : 4);
  }
  std::vector<double> y_ticks() const {
    const std::vector<double> even = round_ticks(y_.low, y_.high, 5);
    if (!logarithmic_) return even;
    for (const auto& digits : {std::vector{1.0}, {1.0, 2.0, 5.0}, {1.0, 1.5, 2.0, 3.0, 5.0, 7.0}}) {
      const std::vector<double> ticks = decimal_ticks(digits);
      if (ticks.size() >= 4) return ticks;
    }
    return even;  // within half a decade even steps are easier to read
  }

 private:
  // These digits times the powers of ten in the range.
  std::vector<double> decimal_ticks(const std::vector<double>& digits) const {
    std::vector<double> ticks;
    for (double power = std::floor(std::log10(y_.low)); power <= std::log10(y_.high); ++power) {
      for (const double digit : digits) {
        const double tick = digit * std::pow(10, power);
        if (tick >= y_.low && tick <= y_.high) ticks.push_back(tick);
      }
    }
    return ticks;
  }
  double scaled(double value) const { return logarithmic_ ? std::log(value) : value; }
  void pad() {
    if (y_.low == y_.high) {
      const double half = y_.low == 0 ? 1 : std::abs(y_.low) * 0.1;
      y_ = {y_.low - half, y_.high + half};
    } else if (logarithmic_) {
      const double factor = std::pow(y_.high / y_.low, 0.05);
      y_ = {y_.low / factor, y_.high * factor};
    } else {
      const double extra = (y_.high - y_.low) * 0.05;
      y_ = {plot_.from_zero && y_.low == 0 ? 0 : y_.low - extra, y_.high + extra};
    }
  }

  const Plot& plot_;
  PlotSize size_;
  Range x_, y_;
  bool logarithmic_ = false;
};

std::string axes(const Plot& plot, const Frame& frame) {
  std::string svg;
  const double bottom = frame.bottom(), right = frame.right();
  for (const double tick : frame.y_ticks()) {
    const double y = frame.y(tick);
    const std::string text = plot.y_tick ? plot.y_tick(tick) : short_number(tick);
    svg += fmt::format(
        "<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\"/>"
        "<text class=\"tick\" x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
        kLeft, right, y, y, kLeft - 8, y + 4, escaped(text));
  }
  for (const double tick : frame.x_ticks()) {
    const double x = frame.x(tick);
    svg += fmt::format(
        "<line class=\"axis\" x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\"/>"
        "<text class=\"tick\" x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"middle\">{4}</text>\n",
        x, bottom, bottom + 4, bottom + 18, step_text(tick));
  }
  svg += fmt::format("<line class=\"axis\" x1=\"{}\" x2=\"{}\" y1=\"{}\" y2=\"{}\"/>\n", kLeft,
                     right, bottom, bottom);
  svg += fmt::format("<text class=\"label\" x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
                     (kLeft + right) / 2, bottom + 34, escaped(plot.x_title));
  return svg;
}

std::string path_of(const std::vector<PlotPoint>& points, const Frame& frame) {
  std::string path;
  bool pen_down = false;
  for (const PlotPoint& point : points) {
    const bool drawn = std::isfinite(point.y);
    if (drawn) {
      path +=
          fmt::format("{}{:.1f} {:.1f}", pen_down ? "L" : "M", frame.x(point.x), frame.y(point.y));
    }
    pen_down = drawn;
  }
  return path;
}

// Means of both coordinates over stretches of equally many points.
std::vector<PlotPoint> smoothed(const std::vector<PlotPoint>& points) {
  std::vector<PlotPoint> means;
  for (std::size_t i = 0; i < kMeans; ++i) {
    PlotPoint sum;
    double count = 0;
    for (std::size_t j = points.size() * i / kMeans; j < points.size() * (i + 1) / kMeans; ++j) {
      if (!std::isfinite(points[j].y)) continue;
      sum = {sum.x + points[j].x, sum.y + points[j].y};
      ++count;
    }
    if (count > 0) means.push_back({sum.x / count, sum.y / count});
  }
  return means;
}

// Of a point; the third series has rings, which do not hide the dots of others.
std::string marker(std::size_t number, double x, double y) {
  return fmt::format("<circle class=\"d{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"/>", number, x, y,
                     number == 2 ? 4.5 : 3);
}

// A long curve is drawn faintly, with its mean over it: noise shows without hiding the course.
std::string curve(const PlotSeries& series, std::size_t number, const Frame& frame) {
  const std::vector<PlotPoint> points = thinned(series.points, kBuckets);
  const bool is_long = !series.marked && series.points.size() >= 2 * kMeans;
  std::string svg = fmt::format("<path class=\"c{}{}\" d=\"{}\"/>\n", number,
                                is_long ? " faint" : "", path_of(points, frame));
  if (is_long) {
    svg += fmt::format("<path class=\"c{}\" d=\"{}\"/>\n", number,
                       path_of(smoothed(series.points), frame));
  }
  for (const PlotPoint& point : points) {
    if (!series.marked || !std::isfinite(point.y)) continue;
    svg += marker(number, frame.x(point.x), frame.y(point.y)) + "\n";
  }
  return svg;
}

std::string level_and_marks(const Plot& plot, const Frame& frame) {
  std::string svg;
  if (plot.level) {
    const double y = frame.y(plot.level->y);
    svg += fmt::format("<path class=\"floor\" d=\"M{} {:.1f}H{}\"/>\n", kLeft, y, frame.right());
  }
  for (const PlotMark& mark : plot.marks) {
    const bool line = mark.kind == PlotMark::Kind::line;
    if (mark.x < frame.x_range().low || mark.x > frame.x_range().high) continue;
    svg += fmt::format("<path class=\"{}\" d=\"M{:.1f} {:.0f}V{:.0f}\"/>\n",
                       line ? "mark" : "tickmark", frame.x(mark.x),
                       line ? kTop : frame.bottom() - 7, frame.bottom());
  }
  return svg;
}

std::string legend(const Plot& plot) {
  std::string html;
  const auto entry = [&html](const std::string& drawing, const std::string& name) {
    html += fmt::format("<li><svg viewBox=\"0 0 18 10\">{}</svg><span>{}</span></li>\n", drawing,
                        escaped(name));
  };
  const auto line = [](const std::string& style, const char* path = "M0 5h18") {
    return fmt::format("<path class=\"{}\" d=\"{}\"/>", style, path);
  };
  if (plot.series.size() > 1 || plot.level || !plot.marks.empty()) {
    for (std::size_t i = 0; i < plot.series.size(); ++i) {
      const bool alone = plot.series[i].marked && plot.series[i].points.size() == 1;
      entry((alone ? "" : line(fmt::format("c{}", i))) +
                (plot.series[i].marked ? marker(i, 9, 5) : ""),
            plot.series[i].name);
    }
  }
  if (plot.level) entry(line("floor"), plot.level->name);
  std::vector<std::string> named;
  for (const PlotMark& mark : plot.marks) {
    if (std::find(named.begin(), named.end(), mark.name) != named.end()) continue;
    named.push_back(mark.name);
    entry(mark.kind == PlotMark::Kind::line ? line("mark", "M9 0v10") : line("tickmark", "M9 1v8"),
          mark.name);
  }
  return html.empty() ? "" : "<ul class=\"legend\">\n" + html + "</ul>\n";
}

// Invisible strips over the picture: pointing at one shows the values measured there.
std::string hover_titles(const Plot& plot, const Frame& frame) {
  const Range& range = frame.x_range();
  const double step = (range.high - range.low) / kStrips;
  std::vector<std::size_t> next(plot.series.size(), 0);
  std::string svg;
  for (int strip = 0; strip < kStrips; ++strip) {
    const double end = strip + 1 == kStrips ? range.high : range.low + step * (strip + 1);
    std::string title, dots;
    for (std::size_t i = 0; i < plot.series.size(); ++i) {
      const auto& points = plot.series[i].points;
      const PlotPoint* last = nullptr;
      for (; next[i] < points.size() && points[next[i]].x <= end; ++next[i]) {
        if (std::isfinite(points[next[i]].y)) last = &points[next[i]];
      }
      if (last == nullptr) continue;
      const std::string value = plot.y_text ? plot.y_text(last->y) : fmt::format("{:.6g}", last->y);
      title += fmt::format("{}{} {}: {} {}", title.empty() ? "" : "\n", plot.x_title,
                           step_text(last->x), plot.series[i].name, value);
      dots += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\"/>", frame.x(last->x),
                          frame.y(last->y));
    }
    if (title.empty()) continue;
    const double left = frame.x(end - step);
    svg += fmt::format(
        "<g class=\"hover\"><title>{}</title><rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" "
        "height=\"{}\"/>{}</g>\n",
        escaped(title), left, kTop, frame.x(end) - left, frame.bottom() - kTop, dots);
  }
  return svg;
}

}  // namespace

std::string escaped(const std::string& text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::vector<double> round_ticks(double low, double high, int count) {
  std::vector<double> ticks;
  if (!(low < high) || count < 1) return ticks;
  const double rough = (high - low) / count;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  double step = power;
  for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
    step = factor * power;
    if (step >= rough * (1 - 1e-9)) break;
  }
  const double first = std::ceil(low / step - 1e-9);
  for (int i = 0; i <= 2 * count + 2; ++i) {
    const double tick = (first + i) * step;
    if (tick > high + step * 1e-9) break;
    ticks.push_back(std::abs(tick) < step * 1e-9 ? 0 : tick);
  }
  return ticks;
}

std::vector<PlotPoint> thinned(const std::vector<PlotPoint>& points, std::size_t buckets) {
  if (points.size() <= 2 * buckets + 2 || buckets == 0) return points;
  const double first = points.front().x, span = points.back().x - first;
  const auto bucket = [&](const PlotPoint& point) {
    if (!(span > 0)) return std::size_t{0};
    const double part = (point.x - first) / span * static_cast<double>(buckets);
    return std::min(static_cast<std::size_t>(std::max(part, 0.0)), buckets - 1);
  };
  std::vector<PlotPoint> kept{points.front()};
  for (std::size_t begin = 1; begin + 1 < points.size();) {
    const std::size_t own = bucket(points[begin]);
    std::size_t least = begin, most = begin, end = begin;
    // A value that is not finite stays only where its whole stretch has no other.
    const auto replaces = [&points](std::size_t candidate, std::size_t best, double sign) {
      const double value = points[candidate].y, other = points[best].y;
      return std::isfinite(value) && (!std::isfinite(other) || sign * value > sign * other);
    };
    for (; end + 1 < points.size() && bucket(points[end]) == own; ++end) {
      if (replaces(end, least, -1)) least = end;
      if (replaces(end, most, 1)) most = end;
    }
    kept.push_back(points[std::min(least, most)]);
    if (least != most) kept.push_back(points[std::max(least, most)]);
    begin = std::max(end, begin + 1);
  }
  kept.push_back(points.back());
  return kept;
}

std::string plot_svg(const Plot& plot, const PlotSize& size) {
  const Frame frame(plot, size);
  std::string svg = fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\">\n",
                                size.width, size.height, escaped(plot.title));
  if (frame.empty()) {
    svg += fmt::format("<text class=\"label\" x=\"{}\" y=\"{}\">nothing was measured</text>\n",
                       kLeft, size.height / 2);
    return svg + "</svg>\n";
  }
  svg += axes(plot, frame) + level_and_marks(plot, frame);
  for (std::size_t i = 0; i < plot.series.size(); ++i) svg += curve(plot.series[i], i, frame);
  return svg + hover_titles(plot, frame) + "</svg>\n";
}

std::string plot_html(const Plot& plot, const PlotSize& broad) {
  return fmt::format(
      "<h3>{}</h3>\n{}{}<div class=\"broad\">{}</div><div class=\"narrow\">{}</div>\n",
      escaped(plot.title), legend(plot),
      plot.note.empty() ? "" : fmt::format("<p>{}</p>\n", escaped(plot.note)),
      plot_svg(plot, broad), plot_svg(plot, kNarrow));
}

}  // namespace bloomery
