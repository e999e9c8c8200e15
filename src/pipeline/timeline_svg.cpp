#include <cmath>
#include <cstdio>

#include "base/error.h"
#include "pipeline/simulate.h"

namespace bloomery {
namespace {

using Work = Instruction::Work;

constexpr double kRow = 26, kLabel = 64, kTop = 30, kLeastUnit = 4, kMostWidth = 4000;

// Later chunks are darker.
std::string color(const Instruction& i, int num_chunks) {
  const int shade = num_chunks > 1 ? 22 * i.chunk / (num_chunks - 1) : 0;
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

std::string box(const TimedPass& pass, double y, double unit, int num_chunks) {
  const double x = kLabel + pass.begin * unit, width = (pass.end - pass.begin) * unit;
  std::string text = concat(
      "<rect x=\"", fixed(x), "\" y=\"", fixed(y), "\" width=\"", fixed(width), "\" height=\"",
      kRow - 4, "\" fill=\"", color(pass.instruction, num_chunks), "\"><title>",
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

}  // namespace

std::string timeline_svg(const Simulation& simulation, int num_chunks) {
  const double duration = std::max(simulation.duration(), 1.0);
  const double unit = std::max(kLeastUnit, std::min(20.0 * num_chunks, kMostWidth / duration));
  const double width = kLabel + duration * unit + 10;
  const double height = kTop + kRow * static_cast<double>(simulation.timeline.size()) + 6;
  std::string svg = concat("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"", fixed(width),
                           "\" height=\"", fixed(height), "\" viewBox=\"0 0 ", fixed(width), " ",
                           fixed(height), "\" font-family=\"sans-serif\" font-size=\"11\">\n");
  svg += concat("<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<text x=\"4\" y=\"18\">",
                simulation.timeline.size(), " stages, bubble ", fixed(100 * simulation.bubble()),
                " % of the work</text>\n");
  for (std::size_t stage = 0; stage < simulation.timeline.size(); ++stage) {
    const double y = kTop + kRow * static_cast<double>(stage);
    svg += concat("<text x=\"4\" y=\"", fixed(y + kRow / 2 + 2), "\">stage ", stage, "</text>\n");
    for (const TimedPass& pass : simulation.timeline[stage]) {
      svg += box(pass, y, unit, num_chunks);
    }
  }
  return svg + "</svg>\n";
}

}  // namespace bloomery
