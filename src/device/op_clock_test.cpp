#include "device/op_clock.h"

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <thread>

#include "base/error.h"

namespace bloomery {
namespace {

TEST(OpClock, ScopesNestAndHaveTheKindOfTheOneAround) {
  Device device({.num_threads = 1});
  Stream stream(device);
  { const OpScope before(stream, "before"); }
  OpClock clock(stream);
  clock.start();
  {
    const OpScope phase(stream, OpKind::backward);
    const OpScope op(stream, "linear");
    { const OpScope inner(stream, "all_reduce", OpKind::communication); }
    { const OpScope inner(stream, "cast"); }
  }
  { const OpScope alone(stream, "alone"); }
  const OpRecording recording = clock.stop();
  { const OpScope after(stream, "after"); }

  ASSERT_EQ(recording.ops.size(), 5u);
  const auto expect = [&](std::size_t i, const std::string& name, OpKind kind, int parent) {
    const OpRecord& op = recording.ops[i];
    EXPECT_EQ(op.name, name);
    EXPECT_EQ(op.kind, kind) << name;
    EXPECT_EQ(op.parent, parent) << name;
    EXPECT_EQ(op.is_phase, i == 0) << name;
    EXPECT_LE(op.start, op.end) << name;
    if (parent >= 0) {
      EXPECT_LE(recording.ops[static_cast<std::size_t>(parent)].start, op.start) << name;
      EXPECT_GE(recording.ops[static_cast<std::size_t>(parent)].end, op.end) << name;
    }
  };
  expect(0, "backward", OpKind::backward, -1);
  expect(1, "linear", OpKind::backward, 0);
  expect(2, "all_reduce", OpKind::communication, 1);
  expect(3, "cast", OpKind::backward, 1);
  expect(4, "alone", OpKind::forward, -1);
  EXPECT_TRUE(recording.launches.empty());
}

TEST(OpClock, TimesAreThoseOfTheSteadyClock) {
  Device device({.num_threads = 1});
  Stream stream(device);
  OpClock clock(stream);
  clock.start();
  const auto start = std::chrono::steady_clock::now();
  {
    const OpScope op(stream, "sleep");
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  const auto end = std::chrono::steady_clock::now();
  const OpRecording recording = clock.stop();
  ASSERT_EQ(recording.ops.size(), 1u);
  EXPECT_GE(recording.ops[0].start, std::chrono::nanoseconds(start.time_since_epoch()).count());
  EXPECT_LE(recording.ops[0].end, std::chrono::nanoseconds(end.time_since_epoch()).count());
  EXPECT_GE(recording.ops[0].end - recording.ops[0].start, 5'000'000);
}

TEST(OpClock, RecordingsMayBeginAndEndInsideScopes) {
  Device device({.num_threads = 1});
  Stream stream(device);
  OpClock clock(stream);
  OpRecording first, second;
  {
    const OpScope outside(stream, "outside");
    clock.start();
    const OpScope cut(stream, "cut");
    first = clock.stop();
    clock.start();
    { const OpScope whole(stream, "whole"); }
  }
  { const OpScope later(stream, "later"); }
  second = clock.stop();
  ASSERT_EQ(first.ops.size(), 1u);
  EXPECT_STREQ(first.ops[0].name, "cut");
  EXPECT_GE(first.ops[0].end, first.ops[0].start);
  ASSERT_EQ(second.ops.size(), 2u);
  EXPECT_STREQ(second.ops[0].name, "whole");
  EXPECT_STREQ(second.ops[1].name, "later");
  EXPECT_EQ(second.ops[1].parent, -1);
}

TEST(OpClock, ExceptionsEndScopes) {
  Device device({.num_threads = 1});
  Stream stream(device);
  OpClock clock(stream);
  clock.start();
  try {
    const OpScope outer(stream, "outer"), inner(stream, "inner");
    throw std::runtime_error("op failed");
  } catch (const std::runtime_error&) {
  }
  { const OpScope next(stream, "next"); }
  const OpRecording recording = clock.stop();
  ASSERT_EQ(recording.ops.size(), 3u);
  EXPECT_EQ(recording.ops[2].parent, -1);
}

TEST(OpClock, AStreamHasOneAtATime) {
  Device device({.num_threads = 1});
  Stream stream(device);
  OpClock second(stream);
  {
    OpClock first(stream);
    EXPECT_THROW(first.stop(), Error);
    first.start();
    EXPECT_EQ(stream.clock(), &first);
    EXPECT_THROW(second.start(), Error);
  }
  EXPECT_EQ(stream.clock(), nullptr) << "a clock that ends leaves its stream";
  second.start();
  second.stop();
  EXPECT_EQ(stream.clock(), nullptr);
}

TEST(OpClock, KeepsTheFirstDetailOfAnOpIfAskedTo) {
  Device device({.num_threads = 1});
  Stream stream(device);
  for (const bool details : {false, true}) {
    OpClock clock(stream, details);
    clock.start();
    clock.note("of nothing");
    {
      const OpScope phase(stream, OpKind::forward);
      clock.note("of a phase");
      const OpScope op(stream, "linear");
      EXPECT_EQ(clock.wants_detail(), details);
      clock.note("[2, 3]");
      clock.note("[4]");
      EXPECT_FALSE(clock.wants_detail());
    }
    const OpRecording recording = clock.stop();
    EXPECT_EQ(recording.ops.at(0).detail, "");
    EXPECT_EQ(recording.ops.at(1).detail, details ? "[2, 3]" : "");
  }
}

class OpClockCuda : public ::testing::Test {
 protected:
  void SetUp() override {
    if (num_cuda_devices() == 0) {
      GTEST_SKIP() << "no GPU on this machine";
    }
  }
};

TEST_F(OpClockCuda, LaunchesAreTimedOnTheDevice) {
  Device device({.kind = DeviceKind::cuda, .num_threads = 1});
  Stream stream(device);
  constexpr std::size_t kBytes = std::size_t{1} << 28;
  const Storage memory(stream.memory(), kBytes);
  stream.fill(memory.data(), 1, kBytes);  // what CUDA loads at first use is no part of a time
  stream.fill(memory.data(), 1, 16);
  OpClock clock(stream);
  for (int repetition = 0; repetition < 3; ++repetition) {
    clock.start();
    {
      const OpScope phase(stream, OpKind::forward);
      {
        const OpScope op(stream, "large");
        for (int i = 0; i < 20; ++i) {
          stream.fill(memory.data(), 1, kBytes);
        }
      }
      const OpScope op(stream, "small");
      stream.fill(memory.data(), 1, 16);
    }
    // Launches inside a launch are a part of it.
    timed_launch(stream, [&] {
      stream.fill(memory.data(), 2, 16);
      stream.fill(memory.data(), 3, 16);
    });
    const OpRecording recording = clock.stop();
    ASSERT_EQ(recording.ops.size(), 4u) << "the last is the wait of stop()";
    EXPECT_EQ(recording.ops[3].kind, OpKind::wait);
    ASSERT_EQ(recording.launches.size(), 22u);
    std::int64_t before = recording.ops[0].start - 100'000, large = 0;
    for (std::size_t i = 0; i < 22; ++i) {
      const LaunchRecord& launch = recording.launches[i];
      EXPECT_EQ(launch.op, i < 20 ? 1 : i == 20 ? 2 : -1);
      EXPECT_GE(launch.start, before) << "launch " << i << " of repetition " << repetition;
      EXPECT_GE(launch.end, launch.start);
      before = launch.end;
      large += i < 20 ? launch.end - launch.start : 0;
    }
    EXPECT_LE(before, recording.ops[3].end + 100'000) << "device times are on the host's clock";
    const LaunchRecord& small = recording.launches[20];
    EXPECT_GT(large / 20, 2 * (small.end - small.start));
    EXPECT_GT(large, 20 * static_cast<std::int64_t>(kBytes) / 20'000) << "above 20 TB/s";
  }
}

TEST_F(OpClockCuda, AGraphIsTimedWhenItRuns) {
  Device device({.kind = DeviceKind::cuda, .num_threads = 1});
  Stream stream(device);
  const Storage memory(stream.memory(), 1024);
  OpClock clock(stream);
  clock.start();
  Graph graph;
  graph.capture(stream, [&] {
    const OpScope op(stream, "captured");
    stream.fill(memory.data(), 1, 1024);
  });
  {
    const OpScope op(stream, "replayed");
    graph.replay(stream);
  }
  const OpRecording recording = clock.stop();
  ASSERT_EQ(recording.launches.size(), 1u);
  EXPECT_STREQ(recording.ops.at(0).name, "replayed");
  EXPECT_EQ(recording.launches[0].op, 0);
}

}  // namespace
}  // namespace bloomery
