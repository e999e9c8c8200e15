#include <gtest/gtest.h>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <future>
#include <thread>

#include "base/error.h"
#include "device/memory_source.h"
#include "device/stream.h"

// Sanitizers must let an impossible allocation return null, which is what is tested here.
// NOLINTBEGIN(bugprone-reserved-identifier): their names for it
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1"; }
// NOLINTEND(bugprone-reserved-identifier)

namespace bloomery {
namespace {

using Bytes = std::vector<unsigned char>;

// The devices of this machine.
std::vector<DeviceKind> kinds() {
  std::vector<DeviceKind> all = {DeviceKind::cpu};
  if (num_cuda_devices() > 0) {
    all.push_back(DeviceKind::cuda);
  }
  return all;
}

struct StreamSetup {
  DeviceKind kind;
  StreamMode mode;
};
std::vector<StreamSetup> stream_setups() {
  std::vector<StreamSetup> all;
  for (const DeviceKind kind : kinds()) {
    all.push_back({kind, StreamMode::direct});
    if (kind == DeviceKind::cpu) {
      all.push_back({kind, StreamMode::queued});
    }
  }
  return all;
}

Bytes download(Stream& stream, const Storage& storage) {
  Bytes host(storage.bytes());
  stream.copy(host.data(), storage.data(), host.size());
  stream.synchronize();
  return host;
}

class StreamTest : public ::testing::TestWithParam<StreamSetup> {
 protected:
  Device device{DeviceOptions{.kind = GetParam().kind, .num_threads = 2}};
  Stream stream{device, GetParam().mode};
};

TEST_P(StreamTest, CopiesAndFillsInOrder) {
  Storage a(stream.memory(), 1000), b(stream.memory(), 1000);
  stream.fill(a.data(), 7, 1000);
  stream.copy(b.data(), a.data(), 1000);
  stream.fill(a.data(), 9, 500);
  stream.copy(b.data(), nullptr, 0);  // nothing to do, nothing to read
  EXPECT_EQ(download(stream, b), Bytes(1000, 7));
  Bytes expected(1000, 7);
  std::fill_n(expected.begin(), 500, 9);
  EXPECT_EQ(download(stream, a), expected);
}

#if defined(__SANITIZE_ADDRESS__)
// Memory of a queue is left alone: its work may come after the release.
TEST_P(StreamTest, AddressSanitizerKnowsTheBoundsOfABlock) {
  const bool guarded = GetParam().kind == DeviceKind::cpu && GetParam().mode == StreamMode::direct;
  const char* data = nullptr;
  for (const std::size_t bytes : {1003, 7}) {  // the second where the first was
    const Storage block(stream.memory(), bytes);
    data = static_cast<const char*>(block.data());
    EXPECT_FALSE(__asan_address_is_poisoned(data));
    EXPECT_FALSE(__asan_address_is_poisoned(data + bytes - 1));
    EXPECT_EQ(__asan_address_is_poisoned(data + bytes) != 0, guarded);
  }
  EXPECT_EQ(__asan_address_is_poisoned(data) != 0, guarded);
}
#endif

TEST_P(StreamTest, EventsOrderStreams) {
  Stream other(device, GetParam().mode);
  Storage data(stream.memory(), 1 << 20);
  Event written(device), read(device);
  for (int round = 0; round < 20; ++round) {
    const auto value = static_cast<unsigned char>(round);
    stream.fill(data.data(), value, data.bytes());
    written.record(stream);
    other.wait(written);
    EXPECT_EQ(download(other, data), Bytes(data.bytes(), value));
    read.record(other);
    stream.wait(read);
  }
  read.synchronize();
}

TEST_P(StreamTest, EventsMeasureTime) {
  Storage data(stream.memory(), 1 << 20);
  Event begin(device), end(device);
  begin.record(stream);
  stream.fill(data.data(), 1, data.bytes());
  end.record(stream);
  end.synchronize();
  EXPECT_GE(end.seconds_since(begin), 0.0);
  EXPECT_LT(end.seconds_since(begin), 5.0);
}

TEST_P(StreamTest, AnEventThatWasNeverRecordedHoldsNobodyUp) {
  Storage data(stream.memory(), 64);
  Event event(device);
  stream.wait(event);
  stream.fill(data.data(), 7, data.bytes());
  event.synchronize();
  EXPECT_EQ(download(stream, data), Bytes(data.bytes(), 7));
}

TEST_P(StreamTest, GraphRepeatsItsWork) {
  Storage source(stream.memory(), 64), target(stream.memory(), 128);
  Graph graph;
  EXPECT_FALSE(graph.captured());
  EXPECT_THROW(graph.replay(stream), Error);
  stream.fill(target.data(), 0, 128);
  graph.capture(stream, [&] {
    stream.copy(target.data(), source.data(), 64);
    stream.fill(static_cast<char*>(target.data()) + 64, 3, 64);
  });
  EXPECT_TRUE(graph.captured());
  EXPECT_EQ(download(stream, target), Bytes(128, 0));  // capturing runs nothing
  for (const unsigned char value : Bytes{10, 20}) {
    stream.fill(source.data(), value, 64);
    graph.replay(stream);
    Bytes expected(128, 3);
    std::fill_n(expected.begin(), 64, value);
    EXPECT_EQ(download(stream, target), expected);
  }
}

// CUDA runs the function while capturing, the CPU when replaying.
TEST_P(StreamTest, FailingWorkLeavesTheStreamUsable) {
  Graph graph;
  const auto capture_and_replay = [&] {
    graph.capture(stream, [] { throw Error("no"); });
    graph.replay(stream);
  };
  EXPECT_THROW(capture_and_replay(), Error);
  Storage data(stream.memory(), 10);
  stream.fill(data.data(), 5, 10);
  EXPECT_EQ(download(stream, data), Bytes(10, 5));
}

// What shows that captured work does neither (tests/gpt_graph_test.cpp).
TEST_P(StreamTest, CapturedWorkCannotWaitOrAskTheDeviceForMemory) {
  if (!stream.on_cuda()) {
    GTEST_SKIP() << "on the CPU the work runs as usual";
  }
  Graph graph;
  EXPECT_THROW(graph.capture(stream, [&] { stream.synchronize(); }), Error);
  const auto allocate = [&] { const Storage more(stream.memory(), std::size_t{1} << 28); };
  EXPECT_THROW(graph.capture(stream, allocate), Error);
  Storage data(stream.memory(), 10);
  stream.fill(data.data(), 5, 10);
  EXPECT_EQ(download(stream, data), Bytes(10, 5));
}

// Blocks that are handed out are told apart by place and size; free ones leave no trace.
TEST_P(StreamTest, SaysWhetherTheSameBlocksAreInUse) {
  const MemorySource& memory = *device.memory();
  auto first = std::make_unique<Storage>(stream.memory(), 4096);
  const std::uint64_t one = memory.in_use();
  {
    const Storage second(stream.memory(), 512), third(stream.memory(), 1 << 20);
    EXPECT_NE(memory.in_use(), one);
  }
  EXPECT_EQ(memory.in_use(), one);
  const void* const place = first->data();
  first.reset();
  EXPECT_NE(memory.in_use(), one);
  first = std::make_unique<Storage>(stream.memory(), 2048);
  EXPECT_EQ(first->data(), place);
  EXPECT_NE(memory.in_use(), one);
  first.reset();
  first = std::make_unique<Storage>(stream.memory(), 4096);
  EXPECT_EQ(memory.in_use(), one);
  { const Storage large(stream.memory(), std::size_t{64} << 20); }
  stream.memory()->trim();  // its segment may be somebody else's now
  EXPECT_NE(memory.in_use(), one);
}

INSTANTIATE_TEST_SUITE_P(All, StreamTest, ::testing::ValuesIn(stream_setups()),
                         [](const auto& info) {
                           return info.param.kind == DeviceKind::cuda     ? "cuda"
                                  : info.param.mode == StreamMode::queued ? "cpu_queued"
                                                                          : "cpu_direct";
                         });

TEST(QueuedStream, RunsInOrderBesideTheCaller) {
  Device device({.num_threads = 1});
  Stream stream(device, StreamMode::queued);
  EXPECT_TRUE(stream.queued());
  std::promise<void> go;
  std::vector<int> order;
  stream.submit([&, wait = go.get_future().share()] { wait.wait(); });
  for (int i = 0; i < 100; ++i) {
    stream.submit([&, i] { order.push_back(i); });
  }
  EXPECT_TRUE(order.empty());  // the caller went on
  go.set_value();
  stream.synchronize();
  std::vector<int> expected(100);
  for (int i = 0; i < 100; ++i) {
    expected[i] = i;
  }
  EXPECT_EQ(order, expected);
}

TEST(QueuedStream, SynchronizeRethrowsOnceAndLaterWorkStillRuns) {
  Device device({.num_threads = 1});
  Stream stream(device, StreamMode::queued);
  bool ran = false;
  stream.submit([] { throw Error("first"); });
  stream.submit([] { throw Error("second"); });
  stream.submit([&] { ran = true; });
  try {
    stream.synchronize();
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "first; later work on this stream failed too: second");
  }
  EXPECT_TRUE(ran);
  stream.synchronize();
}

TEST(QueuedStream, AKindOfErrorStaysWhatItIs) {
  struct Lost : Error {
    using Error::Error;
  };
  Device device({.num_threads = 1});
  Stream stream(device, StreamMode::queued);
  stream.submit([] { throw Lost("lost"); });
  stream.submit([] { throw Lost("lost"); });
  EXPECT_THROW(stream.synchronize(), Lost);
  stream.submit([] { throw Lost("lost"); });
  stream.submit([] { throw Error("therefore"); });
  EXPECT_THROW(stream.synchronize(), Lost);
}

TEST(QueuedStream, AFailureThatNobodyWaitedForIsLogged) {
  ::testing::internal::CaptureStderr();
  {
    Device device({.num_threads = 1});
    Stream stream(device, StreamMode::queued);
    stream.submit([] { throw Error("the disk is full"); });
    stream.submit([] { throw Error("no index"); });
  }
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(text.find("the disk is full"), std::string::npos) << text;
  EXPECT_NE(text.find("no index"), std::string::npos) << text;
}

TEST(QueuedStream, DestructionFinishesTheWork) {
  Device device({.num_threads = 1});
  std::atomic<int> count = 0;
  {
    Stream stream(device, StreamMode::queued);
    for (int i = 0; i < 50; ++i) {
      stream.submit([&] { ++count; });
    }
  }
  EXPECT_EQ(count.load(), 50);
}

TEST(QueuedStream, ADirectStreamWaitsForItsEvents) {
  Device device({.num_threads = 1});
  Stream compute(device), side(device, StreamMode::queued);
  int value = 0;
  Event event(device);
  side.submit([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    value = 1;
  });
  event.record(side);
  compute.wait(event);
  EXPECT_EQ(value, 1);
}

TEST(QueuedStream, AnExceptionInterruptsWorkThatWaits) {
  std::promise<void> go;
  bool finished = false;
  const auto use = [&] {
    Device device({.num_threads = 1});
    Stream stream(device, StreamMode::queued);
    stream.submit(
        [&] {
          go.get_future().wait();
          finished = true;
        },
        [&] { go.set_value(); });
    throw Error("elsewhere");
  };
  EXPECT_THROW(use(), Error);  // and does not hang
  EXPECT_TRUE(finished);
}

class PoolTest : public ::testing::TestWithParam<DeviceKind> {
 protected:
  MemoryPool& pool() { return *stream.memory(); }
  MemoryStatistics statistics() { return pool().statistics(); }

  Device device{DeviceOptions{.kind = GetParam(), .num_threads = 1}};
  Stream stream{device};
};

TEST_P(PoolTest, AlignsCountsAndReuses) {
  void* const a = pool().allocate(1);
  void* const b = pool().allocate(513);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(a) % 512, 0u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(b) % 512, 0u);
  EXPECT_EQ(statistics().used_bytes, 512u + 1024u);
  EXPECT_EQ(statistics().num_device_calls, 1);
  pool().release(a);
  EXPECT_EQ(statistics().used_bytes, 1024u);
  EXPECT_EQ(pool().allocate(500), a);  // the smallest that fits
  pool().release(a);
  pool().release(b);
  EXPECT_EQ(statistics().used_bytes, 0u);
  EXPECT_EQ(statistics().num_device_calls, 1);
  EXPECT_NE(pool().allocate(0), nullptr);
}

TEST_P(PoolTest, SplitsAndMergesNeighbours) {
  constexpr std::size_t kPiece = 512 << 10;
  std::vector<void*> pieces;
  for (int i = 0; i < 4; ++i) {
    pieces.push_back(pool().allocate(kPiece));
  }
  EXPECT_EQ(statistics().reserved_bytes, 4 * kPiece);  // one segment of 2 MiB, cut in four
  for (const int i : {1, 3, 2, 0}) {                   // merged with left, right and both
    pool().release(pieces[i]);
  }
  EXPECT_EQ(pool().allocate(4 * kPiece), pieces[0]);
  EXPECT_EQ(statistics().num_device_calls, 1);
}

TEST_P(PoolTest, KeepsThePeakUntilReset) {
  { Storage a(stream.memory(), 3 << 20), b(stream.memory(), 1 << 20); }
  EXPECT_EQ(statistics().peak_used_bytes, std::size_t{4} << 20);
  EXPECT_GE(statistics().peak_reserved_bytes, std::size_t{4} << 20);
  pool().reset_peak();
  EXPECT_EQ(statistics().peak_used_bytes, 0u);
  pool().trim();
  EXPECT_EQ(statistics().reserved_bytes, 0u);
}

TEST_P(PoolTest, TrimKeepsSegmentsInUse) {
  Storage kept(stream.memory(), 100);
  { Storage other(stream.memory(), 8 << 20); }
  pool().trim();
  EXPECT_EQ(statistics().reserved_bytes, std::size_t{2} << 20);
  stream.fill(kept.data(), 1, kept.bytes());
  EXPECT_EQ(download(stream, kept), Bytes(100, 1));
}

TEST_P(PoolTest, OutOfMemoryNamesTheSizesAndTheRemedy) {
  Storage held(stream.memory(), 1 << 20);
  try {
    pool().allocate(std::size_t{1} << 50);
    FAIL();
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("out of memory: asked for 1.07374e+09 MiB"), std::string::npos) << text;
    EXPECT_NE(text.find("this rank holds 1 MiB"), std::string::npos) << text;
    EXPECT_NE(text.find("smaller micro-batch"), std::string::npos) << text;
  }
  EXPECT_EQ(statistics().used_bytes, std::size_t{1} << 20);
  Storage more(stream.memory(), 100);  // the pool goes on
}

TEST_P(PoolTest, PoisonFillsWhatIsHandedOutAndTakenBack) {
  Device poisoned({.kind = GetParam(), .num_threads = 1, .poison = true});
  std::shared_ptr<Storage> outlives;
  {
    Stream on(poisoned);
    Storage probe(on.memory(), 2048);
    EXPECT_EQ(download(on, probe), Bytes(2048, 0xFF));
    {
      Storage inner(on.memory(), 1024);
      on.fill(inner.data(), 1, 1024);
    }
    Storage again(on.memory(), 1024);  // the same block
    EXPECT_EQ(download(on, again), Bytes(1024, 0xFF));
    outlives = std::make_shared<Storage>(on.memory(), 100);
  }
  outlives.reset();  // after its stream
}

TEST_P(PoolTest, ServesSeveralThreads) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (std::size_t i = 1; i < 200; ++i) {
        Storage storage(stream.memory(), i * 700);
      }
    });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(statistics().used_bytes, 0u);
}

TEST_P(PoolTest, PinnedMemoryIsOrdinaryToTheHost) {
  PinnedMemory pinned(GetParam(), 3000);
  EXPECT_EQ(pinned.bytes(), 3000u);
  std::memset(pinned.data(), 42, 3000);
  Storage data(stream.memory(), 3000);
  stream.copy(data.data(), pinned.data(), 3000);
  EXPECT_EQ(download(stream, data), Bytes(3000, 42));
  const PinnedMemory none(GetParam(), 0);
}

INSTANTIATE_TEST_SUITE_P(All, PoolTest, ::testing::ValuesIn(kinds()), [](const auto& info) {
  return info.param == DeviceKind::cuda ? "cuda" : "cpu";
});

// Poison written ahead of queued work would be overwritten by, or overwrite, what the work uses.
TEST(Poison, FollowsTheOrderOfAQueuedStream) {
  Device device({.num_threads = 1, .poison = true});
  Stream stream(device, StreamMode::queued);
  Bytes seen(64);
  std::promise<void> go;
  stream.submit([wait = go.get_future().share()] { wait.wait(); });
  {
    Storage data(stream.memory(), 64);
    stream.fill(data.data(), 7, 64);
    stream.copy(seen.data(), data.data(), 64);
  }
  go.set_value();
  stream.synchronize();
  EXPECT_EQ(seen, Bytes(64, 7));
}

struct Counter {
  explicit Counter(Device& made_for) : device(&made_for) {}
  Device* device;
  int value = 0;
};

TEST(Device, KeepsOneServiceOfEachType) {
  Device device({.num_threads = 3}), other({.num_threads = 1});
  device.service<Counter>().value = 5;
  EXPECT_EQ(device.service<Counter>().value, 5);
  EXPECT_EQ(device.service<Counter>().device, &device);
  EXPECT_EQ(other.service<Counter>().value, 0);
  EXPECT_EQ(device.pool().num_threads(), 3);
  EXPECT_NE(device.description().find("CPU, 3 threads"), std::string::npos);
}

TEST(Device, RefusesAGpuThatIsNotThere) {
  EXPECT_THROW(Device({.kind = DeviceKind::cuda, .index = 99, .num_threads = 1}), Error);
}

}  // namespace
}  // namespace bloomery
