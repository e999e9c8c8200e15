// Parameters of several ranks that are threads: what each holds, and that every sharding trains as
// one rank does.
#include "zero/reducer.h"

#include <gtest/gtest.h>

#include <mutex>

#include "comm/threads.h"
#include "harness/device_test.h"

namespace bloomery::testing {
namespace {

constexpr std::int64_t kMicroBatches = 3;

struct Weights {
  Parameter first = make_parameter("first", Box::whole({300}), {Init::Kind::normal, 0.1}, true);
  Parameter second = make_parameter("second", Box::whole({40, 5}), {Init::Kind::normal, 0.1}, true);
  Parameter third = make_parameter("third", Box::whole({7}), {Init::Kind::ones}, false);
  Parameter unused = make_parameter("unused", Box::whole({50}), {Init::Kind::ones}, false);

  Weights() { first.uses = 2; }
  std::vector<ParameterList> blocks() { return {{&first}, {&second, &third, &unused}}; }
  ParameterList trained() { return {&third, &second, &first}; }
};

// What a rank needs around its parameters, in the order in which it must end.
struct Rank {
  Rank(const Layout& layout, std::unique_ptr<Communicator> world, DType dtype, DeviceKind device,
       DType reduce_dtype = DType::fp32, bool overlaps = true)
      : machine(device, 1),
        mesh(layout.degrees, std::move(world)),
        ties(mesh, {}),
        kept(machine.stream),
        gathers(overlaps ? std::make_unique<Stream>(machine.device, StreamMode::queued) : nullptr),
        store(machine.stream, mesh, weights.blocks(),
              {.dtype = dtype,
               .sharded = layout.sharded,
               .bucket_elements = 300,
               .ties = &ties,
               .gathers = gathers.get()}),
        communication(machine.device, StreamMode::queued),
        reducer(store, mesh, ties, machine.stream, overlaps ? &communication : nullptr, kept,
                reduce_dtype) {
    store.initialize(5);
    OptimizerOptions options;
    options.schedule = {.learning_rate = 0.01, .decay_style = DecayStyle::constant};
    optimizer = std::make_unique<Optimizer>(machine.stream, options, store.shards());
  }

  ~Rank() { gathers.reset(); }

  // A contribution as a tape makes it: a function of value, step, micro-batch and sample.
  void contribute(Parameter& p, int step, std::int64_t micro_batch, std::int64_t num_micro_batches,
                  int sample) {
    Stream& stream = machine.stream;
    store.acquire({&p});
    const auto values = to_doubles(stream, p.value);
    store.release({&p});
    store.prepare_grad(p);
    auto sums = p.grad_written ? to_doubles(stream, p.grad) : std::vector<double>(values.size());
    for (std::size_t i = 0; i < sums.size(); ++i) {
      const auto at = static_cast<double>(i + 1) * (step + 1) + 7 * sample;
      sums[i] += (std::sin(at) + values[i]) / static_cast<double>(num_micro_batches);
    }
    const Tensor numbers = to_device(stream, p.grad.dtype(), sums);
    stream.copy(p.grad.data(), numbers.data(), numbers.bytes());
    stream.synchronize();
    p.grad_written = true;
    reducer.contributed(p, micro_batch);
  }

  // The samples of the data-parallel ranks are those of one rank with as many micro-batches.
  double step(int step) {
    const int ranks = mesh.degree(Axis::data), rank = mesh.coordinate(Axis::data);
    const std::int64_t mine = kMicroBatches * 4 / ranks;
    store.begin_step(mine);
    for (std::int64_t m = 0; m < mine; ++m) {
      const int sample = static_cast<int>(m) * ranks + rank;
      contribute(weights.first, step, m, kMicroBatches * 4, sample);
      for (Parameter* p : weights.trained()) {
        contribute(*p, step, m, kMicroBatches * 4, sample);
      }
    }
    reducer.finish_step();
    Communicator* const groups[] = {&mesh.axes(store.norm_axes())};
    store.wait_gathers();
    optimizer->step(groups, 1);
    store.gather_updated_values();
    return optimizer->report(0).grad_norm;
  }

  std::vector<double> values() {
    std::vector<double> all;
    for (Parameter* p : weights.trained()) {
      store.acquire({p});
      const auto numbers = to_doubles(machine.stream, p->value);
      store.release({p});
      all.insert(all.end(), numbers.begin(), numbers.end());
    }
    return all;
  }

  Machine machine;
  Weights weights;
  Mesh mesh;
  Ties ties;
  CrossStreamRefs kept;
  std::unique_ptr<Stream> gathers;
  ParameterStore store;
  Stream communication;
  Reducer reducer;
  std::unique_ptr<Optimizer> optimizer;
};

struct Trained {
  std::vector<double> norms, values;
};

Trained train(const Layout& layout, DType dtype, DeviceKind device,
              DType reduce_dtype = DType::fp32, bool overlaps = true) {
  Trained result;
  run_ranks(layout.degrees.num_ranks(), [&](int number, std::unique_ptr<Communicator> world) {
    Rank rank(layout, std::move(world), dtype, device, reduce_dtype, overlaps);
    std::vector<double> norms;
    for (int step = 0; step < 5; ++step) {
      norms.push_back(rank.step(step));
    }
    const std::vector<double> values = rank.values();
    if (number == 0) {
      result = {norms, values};
    }
    rank.mesh.host().barrier("end");
  });
  return result;
}

double mean_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    sum += std::abs(a[i] - b[i]);
  }
  return sum / static_cast<double>(a.size());
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    largest = std::max(largest, std::abs(a[i] - b[i]));
  }
  return largest;
}

class Shardings : public DeviceTest {};
INSTANTIATE_TEST_SUITE_P(Devices, Shardings, every_device(), device_label);

TEST_P(Shardings, TrainAsOneRankDoes) {
  for (const DType dtype : {DType::fp32, DType::bf16}) {
    const Trained one = train({}, dtype, GetParam());
    for (const int ranks : {2, 4}) {
      for (int stage = 0; stage <= 3; ++stage) {
        const Layout layout{.degrees = {.data = ranks}, .sharded = Sharding::of_stage(stage)};
        const Trained several = train(layout, dtype, GetParam());
        for (std::size_t i = 0; i < one.norms.size(); ++i) {
          EXPECT_NEAR(several.norms[i], one.norms[i], 1e-5 * one.norms[i]) << stage << ' ' << ranks;
        }
        EXPECT_LT(largest_difference(several.values, one.values),
                  dtype == DType::fp32 ? 1e-5 : 1e-2)
            << stage << ' ' << ranks;
      }
    }
  }
}

// Each addend is rounded to 8 bits and the sum once more, so norms are within 2^-8 of the exact
// ones. Adam moves each weight by about the learning rate, 0.01, in each of five steps; where
// gradients nearly cancel it may go the other way, but on average it stays within 2^-6 of the way.
TEST_P(Shardings, SumRoundedGradientsWithinTheirPrecision) {
  const Trained one = train({}, DType::fp32, GetParam());
  for (const int ranks : {2, 4}) {
    for (int stage = 0; stage <= 3; ++stage) {
      SCOPED_TRACE(concat("stage ", stage, ", ", ranks, " ranks"));
      const Layout layout{.degrees = {.data = ranks}, .sharded = Sharding::of_stage(stage)};
      const Trained rounded = train(layout, DType::fp32, GetParam(), DType::bf16);
      for (std::size_t i = 0; i < one.norms.size(); ++i) {
        EXPECT_NEAR(rounded.norms[i], one.norms[i], one.norms[i] / 256);
      }
      const double apart = mean_difference(rounded.values, one.values);
      EXPECT_LT(apart, 5 * 0.01 / 64);
      EXPECT_GT(apart, 1e-6) << "nothing was rounded";
      const Trained again = train(layout, DType::fp32, GetParam(), DType::bf16);
      EXPECT_EQ(again.values, rounded.values) << "bit for bit";
    }
  }
}

TEST_P(Shardings, GiveTheSameBitsWithoutOverlap) {
  for (int stage = 0; stage <= 3; ++stage) {
    for (const DType reduce : {DType::fp32, DType::bf16}) {
      const Layout layout{.degrees = {.data = 2}, .sharded = Sharding::of_stage(stage)};
      const Trained beside = train(layout, DType::bf16, GetParam(), reduce);
      const Trained in_line = train(layout, DType::bf16, GetParam(), reduce, false);
      EXPECT_EQ(beside.values, in_line.values) << stage;
      EXPECT_EQ(beside.norms, in_line.norms) << stage;
    }
  }
}

TEST(Shards, ArePartsOfNamedTensorsThatCoverEachOnce) {
  for (int stage = 0; stage <= 3; ++stage) {
    const Layout layout{.degrees = {.data = 4}, .sharded = Sharding::of_stage(stage)};
    std::map<std::string, std::vector<int>> holders;  // of each element
    std::mutex mutex;
    run_ranks(4, [&](int, std::unique_ptr<Communicator> world) {
      Rank rank(layout, std::move(world), DType::bf16, DeviceKind::cpu);
      const auto shards = rank.store.shards();
      const std::lock_guard lock(mutex);
      for (const ParameterStore::Part& part : rank.store.parts()) {
        const Parameter& p = *part.parameter;
        std::vector<int>& counts = holders[p.name];
        counts.resize(static_cast<std::size_t>(p.box.extent.numel()));
        std::vector<float> initial(counts.size());
        initial_numbers(p, 5, rank.machine.device.pool(), std::span(initial));
        const auto weights =
            part.weights.numbers(rank.machine.stream).to_host<float>(rank.machine.stream);
        for (std::int64_t i = 0; i < part.count; ++i) {
          counts[static_cast<std::size_t>(part.first + i)] += part.is_first_holder ? 1 : 0;
          ASSERT_EQ(weights[static_cast<std::size_t>(i)],
                    initial[static_cast<std::size_t>(part.first + i)]);
        }
        EXPECT_EQ(part.weights.value.data(), shards[*part.shard].value.range(part.at, {1}).data());
      }
    });
    EXPECT_EQ(holders.size(), 4u);
    for (const auto& [name, counts] : holders) {
      EXPECT_EQ(counts, std::vector<int>(counts.size(), 1)) << name << " in stage " << stage;
    }
  }
}

TEST(Shards, TakeTheMemoryThatTheyPromise) {
  const auto bytes = [](int stage) {
    std::size_t result = 0;
    run_ranks(2, [&](int rank, std::unique_ptr<Communicator> world) {
      const Layout layout{.degrees = {.data = 2}, .sharded = Sharding::of_stage(stage)};
      const Rank one(layout, std::move(world), DType::bf16, DeviceKind::cpu);
      if (rank == 0) {
        const StoreBytes bytes = one.store.bytes();
        result =
            (bytes.total() - bytes.blocks) / static_cast<std::size_t>(one.store.num_elements());
      }
    });
    return result;
  };
  EXPECT_EQ(bytes(0), 2u + 4 + 2);
  EXPECT_EQ(bytes(1), 2u + 4 + 1);
  EXPECT_EQ(bytes(2), 2u + 2 + 1);
  EXPECT_EQ(bytes(3), 1u + 2 + 1);
}

// A stage holds values whole from acquire to release, however often they nest.
TEST(Shards, OfValuesAreGatheredWhileSomebodyUsesThem) {
  run_ranks(2, [](int, std::unique_ptr<Communicator> world) {
    const Layout layout{.degrees = {.data = 2}, .sharded = Sharding::of_stage(3)};
    Rank rank(layout, std::move(world), DType::fp32, DeviceKind::cpu);
    Parameter& p = rank.weights.second;
    const std::size_t before = rank.machine.stream.memory()->statistics().used_bytes;
    EXPECT_FALSE(p.value);
    rank.store.acquire({&p, &rank.weights.third});
    rank.store.acquire({&p});
    EXPECT_TRUE(p.value);
    EXPECT_FALSE(rank.weights.first.value) << "another block";
    rank.store.release({&p, &rank.weights.third});
    EXPECT_TRUE(p.value);
    rank.store.release({&p});
    EXPECT_FALSE(p.value);
    EXPECT_EQ(rank.machine.stream.memory()->statistics().used_bytes, before);
  });
}

// First and last of three stages hold one weight, the last two another one.
TEST(TiedWeights, AreKnownByTheirNamesAndSummedOverTheirStages) {
  run_ranks(6, [](int, std::unique_ptr<Communicator> world) {
    Machine machine(DeviceKind::cpu, 1);
    Mesh mesh({.data = 2, .pipeline = 3}, std::move(world));
    const int stage = mesh.coordinate(Axis::pipeline);
    Parameter tied = make_parameter("tied", Box::whole({10}), {Init::Kind::ones}, true);
    Parameter own = make_parameter(concat("own ", stage), Box::whole({10}), {}, true);
    ParameterList held = {&own};
    if (stage != 1) {
      held.push_back(&tied);
    }
    Parameter other = make_parameter("other", Box::whole({7}), {Init::Kind::ones}, true);
    if (stage != 0) {
      held.push_back(&other);
    }
    const Ties ties(mesh, held);
    EXPECT_EQ(ties.number(tied) != 0, stage != 1);
    EXPECT_EQ(ties.number(own), 0);
    EXPECT_EQ(ties.is_first_holder(tied), stage != 2);
    EXPECT_EQ(ties.is_first_holder(other), stage != 2);
    EXPECT_EQ(ties.numbers().size(), stage == 2 ? 2u : 1u);
    CrossStreamRefs kept(machine.stream);
    ParameterStore store(machine.stream, mesh, {held}, {.ties = &ties});
    Stream communication(machine.device, StreamMode::queued);
    Reducer reducer(store, mesh, ties, machine.stream, &communication, kept);
    store.begin_step(1);
    for (Parameter* p : held) {
      const std::vector<float> ones(static_cast<std::size_t>(p->grad.numel()),
                                    static_cast<float>(1 + stage));
      const Tensor grad = Tensor::from_host(machine.stream, ones, p->grad.shape());
      machine.stream.copy(p->grad.data(), grad.data(), grad.bytes());
      p->grad_written = true;
      reducer.contributed(*p, 0);
    }
    reducer.finish_step();
    EXPECT_EQ(own.grad.to_host<float>(machine.stream)[0], 2.0f * static_cast<float>(1 + stage));
    if (stage != 1) {
      EXPECT_EQ(tied.grad.to_host<float>(machine.stream)[9], 2.0f * (1 + 3));
    }
    if (stage != 0) {
      EXPECT_EQ(other.grad.to_host<float>(machine.stream)[6], 2.0f * (2 + 3));
    }
    mesh.host().barrier("end");
  });
}

TEST(Reducer, LaunchesNothingOnOneRank) {
  Machine machine(DeviceKind::cpu, 1);
  Mesh mesh = Mesh::single();
  Weights weights;
  const Ties ties(mesh, {});
  CrossStreamRefs kept(machine.stream);
  ParameterStore store(machine.stream, mesh, weights.blocks(), {});
  Reducer reducer(store, mesh, ties, machine.stream, nullptr, kept);
  store.begin_step(1);
  for (Parameter* p : weights.trained()) {
    p->grad_written = true;
    reducer.contributed(*p, 0);
  }
  const std::int64_t calls = machine.stream.memory()->statistics().num_device_calls;
  const std::size_t used = machine.stream.memory()->statistics().used_bytes;
  reducer.finish_step();
  EXPECT_EQ(machine.stream.memory()->statistics().used_bytes, used);
  EXPECT_EQ(machine.stream.memory()->statistics().num_device_calls, calls);
}

}  // namespace
}  // namespace bloomery::testing
