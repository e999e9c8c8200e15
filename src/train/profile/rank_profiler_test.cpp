#include "train/profile/rank_profiler.h"

#include <gtest/gtest.h>

#include <map>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/temporary_folder.h"
#include "comm/threads.h"
#include "pipeline/simulate.h"
#include "train/profile/run_profile.h"

namespace bloomery {
namespace {

using Work = Instruction::Work;

RankOptions small_gpt() {
  RankOptions options;
  options.model.num_layers = 8;
  options.model.hidden_size = 16;
  options.model.attention.num_heads = 2;
  options.model.vocabulary.size = 50;
  options.model.positions.max_length = 16;
  options.device = {.num_threads = 1};
  options.optimizer.schedule.learning_rate = 1e-3;
  options.optimizer.schedule.decay_style = DecayStyle::constant;
  return options;
}

std::vector<HostBatch> batches(std::int64_t count) {
  std::vector<HostBatch> all;
  for (std::int64_t m = 0; m < count; ++m) {
    all.push_back(random_batch(1, 16, 50, 1, m));
  }
  return all;
}

// What each stage did, in its order.
std::vector<std::vector<InstructionTime>> recorded_timeline(const Layout& layout,
                                                            std::int64_t micro_batches) {
  std::vector<std::vector<InstructionTime>> stages(
      static_cast<std::size_t>(layout.degrees.pipeline));
  run_ranks(layout.degrees.pipeline, [&](int stage, std::unique_ptr<Communicator> world) {
    RankOptions options = small_gpt();
    options.layout = layout;
    Rank rank(options, std::move(world));
    InstructionClock clock(rank.stream());
    clock.start();
    rank.runner().executor().time_instructions(&clock);
    rank.step(batches(micro_batches));
    stages[static_cast<std::size_t>(stage)] = clock.times();
  });
  return stages;
}

struct Span {
  std::int64_t start, end;
};
// By what is done, to which part of the model and which micro-batch.
using Times = std::map<std::tuple<Work, int, std::int64_t>, Span>;

void expect_causality(const Times& times, const Instruction& each, int part) {
  const Span& span = times.at({each.work, part, each.micro_batch});
  if (each.work == Work::receive_activation) {
    EXPECT_GE(span.end, times.at({Work::send_activation, part - 1, each.micro_batch}).start);
  } else if (each.work == Work::receive_gradient) {
    EXPECT_GE(span.end, times.at({Work::send_gradient, part + 1, each.micro_batch}).start);
  } else if (each.work == Work::forward && part > 0) {
    EXPECT_GE(span.start, times.at({Work::forward, part - 1, each.micro_batch}).end);
  }
}

TEST(InstructionClock, TheRecordedTimelineIsThatOfTheScheduleAndTheSimulator) {
  struct Case {
    PipelineSchedule schedule;
    int chunks;
  };
  constexpr Case kCases[] = {{PipelineSchedule::gpipe, 1},
                             {PipelineSchedule::one_forward_one_backward, 1},
                             {PipelineSchedule::one_forward_one_backward, 2},
                             {PipelineSchedule::zero_bubble, 1}};
  for (const auto& [schedule, chunks] : kCases) {
    for (const int stages : {2, 4}) {
      SCOPED_TRACE(concat("schedule ", static_cast<int>(schedule), ", ", chunks, " chunks, ",
                          stages, " stages"));
      Layout layout;
      layout.degrees.pipeline = stages;
      layout.schedule = schedule;
      layout.chunks = chunks;
      const PipelineShape shape{stages, 2 * stages, chunks};
      const auto timeline = recorded_timeline(layout, shape.num_micro_batches);
      std::vector<Instructions> lists;
      for (int stage = 0; stage < stages; ++stage) {
        lists.push_back(instructions(schedule, stage, shape));
      }
      const Simulation simulation = simulate(lists, chunks);
      ASSERT_EQ(simulation.problem, "");
      Times times;
      for (int stage = 0; stage < stages; ++stage) {
        const auto place = static_cast<std::size_t>(stage);
        Instructions done, passes, simulated;
        for (const InstructionTime& time : timeline[place]) {
          for (const Instruction& each : time.step) {
            done.push_back(each);
            times[{each.work, each.chunk * stages + stage, each.micro_batch}] = {time.start,
                                                                                 time.end};
            if (!each.is_transfer()) {
              passes.push_back(each);
            }
          }
        }
        for (const TimedPass& pass : simulation.timeline[place]) {
          simulated.push_back(pass.instruction);
        }
        EXPECT_EQ(done, lists[place]);
        EXPECT_EQ(passes, simulated);
      }
      for (int stage = 0; stage < stages; ++stage) {
        for (const Instruction& each : lists[static_cast<std::size_t>(stage)]) {
          expect_causality(times, each, each.chunk * stages + stage);
        }
      }
    }
  }
}

TEST(RunProfile, TheTraceHasARowForEachRankAndLanesForCommunication) {
  const TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "trace.json";
  std::mutex mutex;
  std::string said;
  run_ranks(4, [&](int number, std::unique_ptr<Communicator> world) {
    RankOptions options = small_gpt();
    options.layout.degrees = {.tensor = 2, .data = 2};
    Rank rank(options, std::move(world));
    RunProfile profile(rank, {.profile_steps = {1, 2}}, file);
    profile.begin(1);
    rank.step(batches(2));
    const std::string text = profile.end(1);
    const std::lock_guard lock(mutex);
    EXPECT_EQ(text.empty(), number != 0);
    said += text;
  });
  EXPECT_NE(said.find(" % inside backward\n"), std::string::npos) << said;
  std::map<int, std::map<int, std::string>> lanes;
  std::map<int, std::map<std::string, int>> spans;  // of ranks by lane
  const auto json = nlohmann::json::parse(read_file(file));
  for (const auto& event : json.at("traceEvents")) {
    if (event.at("name") == "thread_name") {
      lanes[event.at("pid")][event.at("tid")] = event.at("args").at("name");
    }
  }
  for (const auto& event : json.at("traceEvents")) {
    if (event.at("ph") == "X") {
      ++spans[event.at("pid")][lanes.at(event.at("pid")).at(event.at("tid"))];
    }
  }
  ASSERT_EQ(spans.size(), 4);
  for (auto& [rank, of_lane] : spans) {
    EXPECT_GT(of_lane["thread 0"], 0);
    EXPECT_EQ(of_lane["instructions"], 4) << "two passes of two micro-batches";
    EXPECT_GE(of_lane["communication"], 2 * 8 * 2) << "sums of two products of each layer";
    EXPECT_GE(of_lane["reductions"], 1);
  }
}

TEST(ReductionsInsideBackward, IsThePartOfTheirTimeThatOverlaps) {
  Trace trace;
  EXPECT_FALSE(reductions_inside_backward(trace).has_value());
  const int instructions = trace.add_lane("instructions"),
            reductions = trace.add_lane("reductions");
  trace.add({"forward of micro-batch 0, chunk 0", "forward", 0, 100, instructions, ""});
  trace.add({"backward of micro-batch 0, chunk 0", "backward", 100, 200, instructions, ""});
  trace.add({"all_reduce", "communication", 150, 190, reductions, ""});
  trace.add({"all_reduce", "communication", 190, 250, reductions, ""});
  EXPECT_DOUBLE_EQ(*reductions_inside_backward(trace), 0.5);
}

}  // namespace
}  // namespace bloomery
