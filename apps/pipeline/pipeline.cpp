#include "apps/pipeline/pipeline.h"

#include <fmt/core.h>

#include <algorithm>

#include "apps/bloomery.h"
#include "apps/common/command_line.h"
#include "apps/common/pager.h"
#include "base/error.h"
#include "base/file.h"
#include "base/wrap.h"
#include "pipeline/simulate.h"

namespace bloomery {
namespace {

struct PipelineChoice {
  PipelineSchedule schedule = PipelineSchedule::one_forward_one_backward;
  PipelineShape shape{.num_stages = 4, .num_micro_batches = 8};
  PassTimes times;
  std::string svg;
};

void describe(OptionTable& t, PipelineChoice& o) {
  t.section("pipeline");
  t.add("stages", o.shape.num_stages, "Pipeline stages.", between(1, 65536));
  t.add("micro-batches", o.shape.num_micro_batches, "Micro-batches per step.", between(1, 1e6));
  t.add("chunks", o.shape.num_chunks, "Virtual stages per stage (interleaved schedule).",
        between(1, 1024));
  t.add("schedule", o.schedule, schedule_help(), schedule_words());
  t.add("forward", o.times.forward, "Time of a stage's forward pass.", above(0));
  t.add("backward-input", o.times.backward_input, "Time of a stage's input gradients.", above(0));
  t.add("backward-weight", o.times.backward_weight, "Time of a stage's weight gradients.",
        above(0));
  t.add("svg", o.svg, "Output file for the timeline, SVG.");
}

}  // namespace

int pipeline(const Arguments& arguments, std::ostream& out) {
  PipelineChoice choice;
  OptionTable table;
  describe(table, choice);
  if (!read_options(table, arguments, out,
                    "usage: bloomery pipeline [OPTIONS]\n\nSimulates a pipeline schedule: checks "
                    "that its stages fit together, and prints the bubble and the micro-batches in "
                    "flight.\n\nexample:\n  bloomery pipeline --stages 4 --micro-batches 16 "
                    "--schedule zb-h1 --svg timeline.svg\n",
                    [&]() -> std::vector<std::string> {
                      std::string why = problem(choice.schedule, choice.shape);
                      return why.empty() ? std::vector<std::string>{} : std::vector{std::move(why)};
                    })) {
    return kFinished;
  }
  std::vector<Instructions> lists;
  for (int stage = 0; stage < choice.shape.num_stages; ++stage) {
    lists.push_back(instructions(choice.schedule, stage, choice.shape));
  }
  const Simulation simulation = simulate(lists, choice.shape.num_chunks, true, choice.times);
  check(simulation.problem.empty(), simulation.problem);
  const auto [least, most] = std::ranges::minmax(simulation.most_tapes);
  const std::string line = fmt::format(
      "{} stages, {} micro-batches: a step takes {:g}, stages wait {:.2f} % of the time they work "
      "and hold {} to {} passes",
      choice.shape.num_stages, choice.shape.num_micro_batches, simulation.duration(),
      100 * simulation.bubble(), least, most);
  out << wrapped_lines(line, output_columns(out)) << '\n';
  if (!choice.svg.empty()) {
    write_file(choice.svg, timeline_svg(simulation, choice.shape.num_chunks));
    out << choice.svg << '\n';
  }
  return kFinished;
}

}  // namespace bloomery
