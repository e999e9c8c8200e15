#include <algorithm>
#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "pipeline/simulate.h"

namespace bloomery {
namespace {

using Work = Instruction::Work;

// In pixels. A picture is as wide as a screen; more passes than that has pixels make it wider.
constexpr double kRow = 26, kTop = 58, kLeastUnit = 1, kMostUnit = 20, kMostWidth = 1280;
constexpr double kLetter = 6.5, kSwatch = 12;
constexpr const char* kWaits = "#ececec";

// Later chunks are darker.
std::string color(const Instruction& i, int num_chunks) {
  const int shade = num_chunks > 1 ? 24 * i.chunk / (num_chunks - 1) - 16 : 0;
  const int hue = i.work == Work::forward ? 212 : i.work == Work::backward_weight ? 36 : 145;
  const int light = (i.work == Work::backward_weight ? 66 : 62) - shade;
  return concat("hsl(", hue, ",55%,", light, "%)");
}

const char* what(Work work) {
  return work == Work::forward           ? "forward"
         : work == Work::backward_input  ? "backward, inputs"
         : work == Work::backward_weight ? "backward, weights"
                                         : "backward";
}

std::string fixed(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", x);
  return text;
}

std::string rect(double x, double y, double width, double height, const std::string& fill) {
  return concat("<rect x=\"", fixed(x), "\" y=\"", fixed(y), "\" width=\"", fixed(width),
                "\" height=\"", fixed(height), "\" fill=\"", fill, "\"");
}

std::string text_at(double x, double y, const std::string& text) {
  return concat("<text x=\"", fixed(x), "\" y=\"", fixed(y), "\">", text, "</text>\n");
}

// With a gap behind it, so that passes of one kind stay apart.
std::string box(const TimedPass& pass, double x, double y, double unit, int num_chunks) {
  x += pass.begin * unit;
  const double whole = (pass.end - pass.begin) * unit, width = whole - std::min(1.0, whole / 4);
  std::string text =
      concat(rect(x, y, width, kRow - 4, color(pass.instruction, num_chunks)), "><title>",
             what(pass.instruction.work), " of micro-batch ", pass.instruction.micro_batch);
  text += num_chunks > 1 ? concat(", chunk ", pass.instruction.chunk) : "";
  text += "</title></rect>\n";
  const std::string number = std::to_string(pass.instruction.micro_batch);
  if (width > 8 * static_cast<double>(number.size()) + 2) {
    text += concat("<text x=\"", fixed(x + width / 2), "\" y=\"", fixed(y + kRow / 2 + 2),
                   "\" text-anchor=\"middle\">", number, "</text>\n");
  }
  return text;
}

struct LegendEntry {
  std::string fill, name;
};

// The kinds of passes that the timeline has, in the order of a step, and the time without one.
std::vector<LegendEntry> legend(const Simulation& simulation, int num_chunks) {
  std::vector<LegendEntry> entries;
  for (const Work work :
       {Work::forward, Work::backward, Work::backward_input, Work::backward_weight}) {
    const bool there = std::ranges::any_of(simulation.timeline, [&](const auto& stage) {
      return std::ranges::any_of(
          stage, [&](const TimedPass& pass) { return pass.instruction.work == work; });
    });
    if (!there) continue;
    for (const int chunk : num_chunks > 1 ? std::vector{0, num_chunks - 1} : std::vector{0}) {
      const Instruction instruction{.work = work, .chunk = chunk};
      entries.push_back({color(instruction, num_chunks),
                         num_chunks > 1 ? concat(what(work), ", chunk ", chunk) : what(work)});
    }
  }
  entries.push_back({kWaits, "waits"});
  return entries;
}

double width_of(const std::vector<LegendEntry>& entries) {
  double width = 0;
  for (const LegendEntry& entry : entries) {
    width += 2.5 * kSwatch + kLetter * static_cast<double>(entry.name.size());
  }
  return width;
}

std::string legend_svg(const std::vector<LegendEntry>& entries) {
  std::string svg;
  double x = 4;
  for (const LegendEntry& entry : entries) {
    svg += rect(x, 32, kSwatch, kSwatch, entry.fill) + "/>\n";
    svg += text_at(x + 1.5 * kSwatch, 42, entry.name);
    x += 2.5 * kSwatch + kLetter * static_cast<double>(entry.name.size());
  }
  return svg;
}

}  // namespace

std::string timeline_svg(const Simulation& simulation, int num_chunks) {
  const double duration = std::max(simulation.duration(), 1.0);
  const std::size_t stages = simulation.timeline.size();
  const std::string title =
      concat(stages, stages == 1 ? " stage" : " stages", ", a step takes ", simulation.duration(),
             ", bubble ", fixed(100 * simulation.bubble()), " % of the work");
  const std::vector<LegendEntry> entries = legend(simulation, num_chunks);
  const double label = 12 + kLetter * static_cast<double>(concat("stage ", stages - 1).size());
  const double unit =
      std::clamp((kMostWidth - label) / duration, kLeastUnit, kMostUnit * num_chunks);
  const double width = std::max({label + duration * unit + 10, width_of(entries) + 8,
                                 kLetter * static_cast<double>(title.size()) + 8});
  const double height = kTop + kRow * static_cast<double>(stages) + 6;
  std::string svg = concat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", fixed(width),
                           "\" height=\"", fixed(height), "\" viewBox=\"0 0 ", fixed(width), " ",
                           fixed(height), "\" font-family=\"sans-serif\" font-size=\"11\">\n");
  svg += "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n" + text_at(4, 18, title) +
         legend_svg(entries);
  for (std::size_t stage = 0; stage < stages; ++stage) {
    const double y = kTop + kRow * static_cast<double>(stage);
    svg += text_at(4, y + kRow / 2 + 2, concat("stage ", stage));
    svg += rect(label, y, duration * unit, kRow - 4, kWaits) + "/>\n";
    for (const TimedPass& pass : simulation.timeline[stage]) {
      svg += box(pass, label, y, unit, num_chunks);
    }
  }
  return svg + "</svg>\n";
}

}  // namespace bloomery
