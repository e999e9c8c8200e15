// A plot of curves over steps as an SVG picture that needs no script and no other file.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace bloomery {

struct PlotPoint {
  double x = 0, y = 0;  // a y that is not finite breaks the curve
};

struct PlotSeries {
  std::string name;
  std::vector<PlotPoint> points;  // by growing x
  bool marked = false;            // few points, each with a dot
};

struct PlotLevel {  // a horizontal line
  std::string name;
  double y = 0;
};

struct PlotMark {  // something that happened at an x
  enum class Kind { line, tick };
  double x = 0;
  Kind kind = Kind::line;
  std::string name;  // "resumed"; the legend has each name once
};

struct Plot {
  std::string title, x_title;
  std::string note = {};  // under the legend
  std::vector<PlotSeries> series = {};
  std::optional<PlotLevel> level = {};
  std::vector<PlotMark> marks = {};
  bool logarithmic = false;  // of y; only where all values are positive
  bool from_zero = false;
  std::function<std::string(double)> y_text;  // a value in full, for hover titles; else 6 digits
  std::function<std::string(double)> y_tick;  // a value beside the axis; else as short as it goes
};

// The picture alone, in pixels that texts of 12 fit; the page may scale it.
struct PlotSize {
  double width = 0, height = 0;
};
std::string plot_svg(const Plot& plot, const PlotSize& size);

// Title, legend, note and the picture twice: of class `broad` in the given size, of class `narrow`
// for screens of telephones. The page shows one of them.
std::string plot_html(const Plot& plot, const PlotSize& broad);

// The least and greatest y of each of `buckets` stretches of x, in their order, with the first
// and last point: what is left of a long curve that draws the same pixels. Short curves stay.
std::vector<PlotPoint> thinned(const std::vector<PlotPoint>& points, std::size_t buckets);

// Round numbers (1, 2 or 5 times a power of ten apart) within [low, high], about `count`.
std::vector<double> round_ticks(double low, double high, int count);

// For text and attributes of HTML and SVG.
std::string escaped(const std::string& text);

}  // namespace bloomery
