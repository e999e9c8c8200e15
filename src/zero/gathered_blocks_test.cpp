// Blocks whose values are whole for a while: what is gathered when, and that what is used is right.
#include "zero/gathered_blocks.h"

#include <gtest/gtest.h>

#include "comm/threads.h"
#include "harness/device_test.h"
#include "zero/parameter_store.h"

namespace bloomery::testing {
namespace {

TEST(PrefetchOrder, IsThatOfTheLastPassOfTheSameKind) {
  PrefetchOrder order;
  const auto run = [&order](Pass pass, const std::vector<int>& blocks) {
    order.begin(pass);
    std::vector<int> next;  // that was foreseen at each
    for (const int block : blocks) {
      order.note(block);
      next.push_back(order.ahead().empty() ? -1 : order.ahead().front());
    }
    return next;
  };
  using Blocks = std::vector<int>;
  EXPECT_EQ(run(Pass::training, {0, 1, 2, 1, 0}), (Blocks{-1, -1, -1, -1, -1}));
  EXPECT_EQ(run(Pass::training, {0, 1, 2, 1, 0}), (Blocks{1, 2, 1, 0, -1}));
  EXPECT_EQ(run(Pass::evaluation, {0, 1, 2}), (Blocks{-1, -1, -1}));
  EXPECT_EQ(run(Pass::training, {0, 1, 0}), (Blocks{1, 2, -1})) << "it went another way";
  EXPECT_EQ(run(Pass::evaluation, {0, 1, 2}), (Blocks{1, 2, -1}));
  EXPECT_EQ(run(Pass::training, {0, 1, 0}), (Blocks{1, 0, -1})) << "which is the way now";
  order.begin(Pass::evaluation);
  EXPECT_EQ(order.ahead().size(), 3u);
}

// A communicator that writes down its gathers when they are asked for.
class Noting final : public Communicator {
 public:
  Noting(std::unique_ptr<Communicator> inner, std::vector<std::string>& notes)
      : inner_(std::move(inner)), notes_(notes) {}
  int rank() const override { return inner_->rank(); }
  int size() const override { return inner_->size(); }
  void all_reduce(View data, Reduce reduce, Stream& stream) override {
    inner_->all_reduce(data, reduce, stream);
  }
  void all_gather(ConstView part, View whole, Stream& stream) override {
    notes_.push_back(concat("gather ", whole.numel() / 256));
    inner_->all_gather(part, whole, stream);
  }
  void reduce_scatter(ConstView whole, View part, Reduce reduce, Stream& stream) override {
    inner_->reduce_scatter(whole, part, reduce, stream);
  }
  void broadcast(View data, int root, Stream& stream) override {
    inner_->broadcast(data, root, stream);
  }
  void all_to_all(ConstView out, View in, const Counts& counts, Stream& stream) override {
    inner_->all_to_all(out, in, counts, stream);
  }
  void exchange(std::span<const Transfer> transfers, Stream& stream) override {
    inner_->exchange(transfers, stream);
  }
  std::unique_ptr<Communicator> split(int color, int key) override {
    return std::make_unique<Noting>(inner_->split(color, key), notes_);
  }
  HostGroup& host() override { return inner_->host(); }

 private:
  std::unique_ptr<Communicator> inner_;
  std::vector<std::string>& notes_;
};

// Block number i has (i + 1) * 256 elements, all i + 1 and the number of updates.
struct Blocks {
  Blocks(DeviceKind device, std::unique_ptr<Communicator> world, int count, int stage,
         bool overlaps = true)
      : machine(device, 1), mesh({.data = 2}, std::make_unique<Noting>(std::move(world), notes)) {
    parameters.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) {
      parameters.push_back(make_parameter(concat("p", i), Box::whole({(i + 1) * 256}), {}, false));
      blocks.push_back({&parameters.back()});
    }
    if (overlaps) {
      gathers = std::make_unique<Stream>(machine.device, StreamMode::queued);
    }
    store = std::make_unique<ParameterStore>(machine.stream, mesh, blocks,
                                             StoreOptions{.sharded = Sharding::of_stage(stage),
                                                          .bucket_elements = 256,
                                                          .gathers = gathers.get()});
    update();
    notes.clear();
  }
  ~Blocks() {
    gathers.reset();
    mesh.host().barrier("end");
  }

  void update() {
    ++num_updates;
    store->wait_gathers();
    for (const ParameterStore::Part& part : store->parts()) {
      const auto number = static_cast<double>(part.parameter->box.extent.numel()) / 256;
      const Tensor numbers = to_device(
          machine.stream, DType::fp32,
          std::vector<double>(static_cast<std::size_t>(part.count), number + num_updates));
      part.weights.set(machine.stream, numbers);
      machine.stream.synchronize();
    }
    store->gather_updated_values();
  }

  void use(int i) {
    ParameterList& block = blocks[static_cast<std::size_t>(i)];
    store->acquire(block);
    notes.push_back(concat("use ", i + 1));
    const std::vector<double> values = to_doubles(machine.stream, block.front()->value);
    EXPECT_EQ(values, std::vector<double>(values.size(), i + 1 + num_updates));
    store->release(block);
  }

  std::vector<std::string> pass(const std::vector<int>& order, Pass kind = Pass::training) {
    store->begin_pass(kind);
    for (const int i : order) {
      use(i);
    }
    return std::exchange(notes, {});
  }

  std::vector<std::string> notes;
  Machine machine;
  Mesh mesh;
  std::vector<Parameter> parameters;
  std::vector<ParameterList> blocks;
  std::unique_ptr<Stream> gathers;
  std::unique_ptr<ParameterStore> store;
  int num_updates = 0;
};

using Notes = std::vector<std::string>;

class BlockValuesTest : public DeviceTest {};
INSTANTIATE_TEST_SUITE_P(Devices, BlockValuesTest, every_device(), device_label);

TEST_P(BlockValuesTest, ComeAheadOnceTheOrderIsKnown) {
  run_ranks(2, [](int, std::unique_ptr<Communicator> world) {
    Blocks b(GetParam(), std::move(world), 4, 3);
    const std::size_t used = b.machine.stream.memory()->statistics().used_bytes;
    b.machine.stream.memory()->reset_peak();
    const std::vector<int> step = {0, 1, 2, 3, 3, 2, 1, 0};
    EXPECT_EQ(b.pass(step),
              (Notes{"gather 1", "use 1", "gather 2", "use 2", "gather 3", "use 3", "gather 4",
                     "use 4", "use 4", "use 3", "gather 2", "use 2", "gather 1", "use 1"}))
        << "a block that is still there is used again";
    b.update();
    EXPECT_EQ(b.pass(step),
              (Notes{"gather 1", "gather 2", "use 1", "gather 3", "use 2", "gather 4", "use 3",
                     "use 4", "use 4", "gather 2", "use 3", "gather 1", "use 2", "use 1"}))
        << "the first comes with the update";
    b.update();
    EXPECT_EQ(b.pass({0, 1, 2, 3}, Pass::evaluation),
              (Notes{"gather 1", "use 1", "gather 2", "use 2", "gather 3", "use 3", "gather 4",
                     "use 4"}));
    // Another order than the last: what was gathered for nothing does no harm.
    EXPECT_EQ(b.pass({0, 2, 1, 3}), (Notes{"gather 1", "gather 2", "use 1", "gather 3", "use 3",
                                           "gather 2", "use 2", "gather 4", "use 4"}));
    b.update();
    EXPECT_EQ(b.machine.stream.memory()->statistics().used_bytes, used);
  });
}

TEST_P(BlockValuesTest, ComeInOrderAfterAnUpdateWhereTheyStay) {
  run_ranks(2, [](int, std::unique_ptr<Communicator> world) {
    Blocks b(GetParam(), std::move(world), 3, 1);
    for (int step = 0; step < 3; ++step) {
      b.update();
      EXPECT_EQ(b.pass({0, 1, 2, 2, 1, 0}), (Notes{"gather 1", "gather 2", "gather 3", "use 1",
                                                   "use 2", "use 3", "use 3", "use 2", "use 1"}));
    }
    b.update();
    b.store->wait_gathers();
    EXPECT_EQ(to_doubles(b.machine.stream, b.parameters[2].value)[767], 3 + b.num_updates);
  });
}

TEST(GatheredBlocks, AreGatheredWhenTheyAreUsedIfNothingMayOverlap) {
  run_ranks(2, [](int, std::unique_ptr<Communicator> world) {
    Blocks b(DeviceKind::cpu, std::move(world), 3, 3, false);
    const Notes plain = {"gather 1", "use 1", "gather 2", "use 2", "gather 3", "use 3"};
    EXPECT_EQ(b.pass({0, 1, 2}), plain);
    b.update();
    EXPECT_EQ(b.pass({0, 1, 2}), plain);
  });
}

TEST(GatheredBlocks, TakeMemoryBesideTheTwoBuffersOnlyForBlocksUsedAtOnce) {
  run_ranks(2, [](int, std::unique_ptr<Communicator> world) {
    Blocks b(DeviceKind::cpu, std::move(world), 4, 3);
    constexpr std::size_t kLargest = 4 * 256 * sizeof(float);
    EXPECT_EQ(b.store->bytes().blocks, 2 * kLargest);
    const auto used = [&] { return b.machine.stream.memory()->statistics().used_bytes; };
    const std::size_t before = used();
    b.store->acquire(b.blocks[0]);
    b.store->acquire(b.blocks[1]);
    EXPECT_EQ(used(), before);
    b.use(3);
    b.store->acquire(b.blocks[2]);
    EXPECT_EQ(used(), before + 3 * 256 * sizeof(float));
    EXPECT_EQ(to_doubles(b.machine.stream, b.parameters[2].value)[0], 3 + b.num_updates);
    EXPECT_EQ(to_doubles(b.machine.stream, b.parameters[0].value)[0], 1 + b.num_updates);
    for (const int i : {0, 1, 2}) {
      b.store->release(b.blocks[static_cast<std::size_t>(i)]);
    }
    EXPECT_EQ(used(), before);
    b.use(0);
  });
}

}  // namespace
}  // namespace bloomery::testing
