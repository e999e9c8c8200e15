#include "train/report/trace.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

#include "base/error.h"

namespace bloomery {
namespace {

std::int64_t sum(const TimeTable& table) {
  return std::accumulate(
      table.rows.begin(), table.rows.end(), std::int64_t{0},
      [](std::int64_t so_far, const TimeRow& row) { return so_far + row.self_ns; });
}

const TimeRow* find(const TimeTable& table, const std::string& name) {
  for (const TimeRow& row : table.rows) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

TEST(Trace, NothingIsRecordedOutsideOfSteps) {
  Trace trace;
  { const Span span(&trace, "a", "op"); }
  { const Span span(nullptr, "a", "op"); }
  EXPECT_TRUE(trace.spans().empty());
  EXPECT_THROW(trace.end_step(), Error);
}

TEST(Trace, TableGivesEachInstantToTheInnermostSpan) {
  Trace trace;
  trace.begin_step(7);
  const std::int64_t start = trace.steps()[0].start;
  while (Trace::now() < start + 200000) {
  }
  trace.add("layer", "forward", start + 10, start + 100010);
  trace.add("matmul", "forward", start + 1010, start + 21010);
  trace.add("matmul", "forward", start + 31010, start + 61010);
  trace.add("late", "forward", start + 90010, start + 120010);  // cut to the layer around it
  trace.end_step();
  const TimeTable table = time_table(trace);
  EXPECT_EQ(table.num_steps, 1);
  EXPECT_EQ(sum(table), table.step_ns);
  EXPECT_EQ(find(table, "matmul")->self_ns, 50000);
  EXPECT_EQ(find(table, "matmul")->calls, 2);
  EXPECT_EQ(find(table, "late")->self_ns, 10000);
  EXPECT_EQ(find(table, "layer")->self_ns, 40000);
  EXPECT_EQ(table.rows.back().name, "(unattributed)");
  EXPECT_EQ(table.rows.back().self_ns, table.step_ns - 100000);
  EXPECT_NEAR(table.attributed(), 100000.0 / static_cast<double>(table.step_ns), 1e-12);
}

TEST(Trace, RandomSpansAlwaysSumToTheStep) {
  for (unsigned seed = 1; seed <= 50; ++seed) {
    Trace trace;
    trace.begin_step(1);
    const std::int64_t start = trace.steps()[0].start;
    unsigned state = seed;
    const auto random = [&state] { return (state = state * 1664525u + 1013904223u) >> 16; };
    for (int i = 0; i < 200; ++i) {
      const std::int64_t begin = start - 5000 + random() % 40000;
      trace.add(i % 3 == 0 ? "a" : "b", "op", begin, begin + random() % 20000);
    }
    trace.end_step();
    const TimeTable table = time_table(trace);
    EXPECT_EQ(sum(table), table.step_ns) << seed;
    for (const TimeRow& row : table.rows) EXPECT_GE(row.self_ns, 0) << seed;
  }
}

TEST(Trace, ThreadsAndStreamsHaveLanes) {
  Trace trace;
  const int stream = trace.add_lane("CUDA stream");
  trace.begin_step(3);
  { const Span span(&trace, "main", "op"); }
  std::thread([&trace] { const Span span(&trace, "loader", "data"); }).join();
  const std::int64_t time = Trace::now();
  trace.add({"kernel", "gpu", time, time + 50, stream, "[2, 3]"});
  EXPECT_THROW(trace.add({"x", "y", 0, 1, 9, ""}), Error);
  trace.end_step();
  EXPECT_EQ(trace.lanes(), (std::vector<std::string>{"thread 0", "CUDA stream", "thread 1"}));

  const auto json = nlohmann::json::parse(chrome_trace(trace, 5));
  int complete = 0;
  for (const auto& event : json.at("traceEvents")) {
    EXPECT_EQ(event.at("pid"), 5);
    if (event.at("ph") != "X") continue;
    ++complete;
    EXPECT_GE(event.at("ts").get<double>(), 0);
    EXPECT_GE(event.at("dur").get<double>(), 0);
    EXPECT_EQ(event.contains("args"), event.at("name") == "kernel");
  }
  EXPECT_EQ(complete, 4) << "the step and three spans";
}

TEST(Trace, TableAsText) {
  Trace trace;
  trace.begin_step(1);
  { const Span span(&trace, "matmul", "forward"); }
  trace.end_step();
  const std::string text = to_text(time_table(trace));
  EXPECT_TRUE(text.starts_with("where the time went, mean of 1 step\n")) << text;
  EXPECT_NE(text.find("\nsum "), std::string::npos);
  EXPECT_NE(text.find("100.00%\n"), std::string::npos) << text;
}

}  // namespace
}  // namespace bloomery
