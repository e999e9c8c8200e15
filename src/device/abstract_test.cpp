// The abstract device: what is given to it takes memory and operations in the books only. Events
// keep to their kind of device.
#include <gtest/gtest.h>

#include <vector>

#include "base/error.h"
#include "device/launch.h"

namespace bloomery {
namespace {

struct Counted {
  double operations;
};
double flops(const Counted& k) { return k.operations; }
template <class Tag>
void run(Tag, Stream&, const Counted&) {
  FAIL() << "ran";
}

struct Uncounted {};
template <class Tag>
void run(Tag, Stream&, const Uncounted&) {
  FAIL() << "ran";
}

DeviceOptions abstract() { return {.kind = DeviceKind::abstract}; }

TEST(AbstractDevice, CountsOperationsAndRunsNothing) {
  Device device(abstract());
  Stream stream(device, StreamMode::queued);
  EXPECT_FALSE(stream.queued());
  launch(stream, Counted{5e15});
  launch(stream, Counted{1e15});
  launch(stream, Uncounted{});
  EXPECT_EQ(device.service<FlopCount>().total, 6e15);

  const Storage huge(stream.memory(), std::size_t{1} << 40);
  stream.fill(huge.data(), 1, huge.bytes());
  std::vector<char> host(100, 7);
  stream.copy(huge.data(), host.data(), host.size());
  stream.copy(host.data(), huge.data(), host.size());
  stream.submit([] { FAIL() << "ran"; });
  Graph graph;
  graph.capture(stream, [] { FAIL() << "ran"; });
  graph.replay(stream);
  Event begin(device), end(device);
  begin.record(stream);
  end.record(stream);
  stream.wait(end);
  end.synchronize();
  stream.synchronize();
  EXPECT_EQ(end.seconds_since(begin), 0);
  EXPECT_EQ(host, std::vector<char>(100, 7));
}

TEST(AbstractDevice, TellsOfEveryKernel) {
  Device device(abstract());
  Stream stream(device);
  struct Told : Collector {
    bool take(const std::type_info& type, const void* kernel) override {
      if (type == typeid(Counted)) {
        counted.push_back(static_cast<const Counted*>(kernel)->operations);
      } else {
        ++others;
      }
      return true;
    }
    void flush() override {}
    std::vector<double> counted;
    int others = 0;
  } told;
  stream.set_collector(&told);
  launch(stream, Counted{5});
  launch(stream, Uncounted{});
  launch(stream, Counted{3});
  EXPECT_EQ(told.counted, (std::vector<double>{5, 3}));
  EXPECT_EQ(told.others, 1);
}

TEST(AbstractDevice, FollowsTheRulesOfWhatItStandsFor) {
  EXPECT_EQ(Device(abstract()).rules(), DeviceKind::cpu);
  EXPECT_EQ(Device({.kind = DeviceKind::abstract, .stands_for = DeviceKind::cuda}).rules(),
            DeviceKind::cuda);
  EXPECT_EQ(Device({.num_threads = 1}).rules(), DeviceKind::cpu);
}

// The pool is the same, so are its books.
TEST(AbstractDevice, TakesTheMemoryThatADeviceWouldTake) {
  MemoryStatistics found[2];
  for (const bool real : {false, true}) {
    Device device({.kind = real ? DeviceKind::cpu : DeviceKind::abstract, .num_threads = 1});
    Stream stream(device);
    {
      const Storage kept(stream.memory(), 1000);
      for (std::size_t mebibytes = 1; mebibytes < 8; ++mebibytes) {
        const Storage first(stream.memory(), mebibytes << 20), second(stream.memory(), 300'000);
      }
      stream.memory()->trim();
    }
    found[real] = stream.memory()->statistics();
  }
  EXPECT_EQ(found[0].used_bytes, 0u);
  EXPECT_GT(found[0].peak_used_bytes, std::size_t{7} << 20);
  EXPECT_EQ(found[0].peak_used_bytes, found[1].peak_used_bytes);
  EXPECT_EQ(found[0].reserved_bytes, found[1].reserved_bytes);
  EXPECT_EQ(found[0].peak_reserved_bytes, found[1].peak_reserved_bytes);
  EXPECT_EQ(found[0].num_device_calls, found[1].num_device_calls);
}

TEST(Event, KeepsToItsKindOfDevice) {
  Device cpu({.num_threads = 1}),
      other(num_cuda_devices() > 0 ? DeviceOptions{.kind = DeviceKind::cuda} : abstract());
  Stream here(cpu), there(other);
  Event of_here(cpu), of_there(other);
  EXPECT_THROW(of_here.record(there), Error);
  EXPECT_THROW(of_there.record(here), Error);
  EXPECT_THROW(here.wait(of_there), Error);
  EXPECT_THROW(there.wait(of_here), Error);
  EXPECT_THROW(static_cast<void>(of_here.seconds_since(of_there)), Error);
  EXPECT_THROW(static_cast<void>(of_here.seconds_since(of_here)), Error);  // not recorded
}

}  // namespace
}  // namespace bloomery
