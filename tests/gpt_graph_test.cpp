// A whole training step of a GPT, captured in a graph and replayed. CUDA ends a capture with an
// error when the host waits for the stream, reads device memory or asks the device for more (see
// device_test.cpp), so this is the test that no op does. Learning rate, loss scale and whether a
// step is skipped change from step to step: they must live on the device.
//
// Captured are the passes of two micro-batches, the gradient norm and the update. Only what tells
// the host about the step is left out (publish_report, Readback): an event recorded in a graph
// cannot be waited for. On the CPU a graph calls the function again, which checks the rest.
#include <gtest/gtest.h>

#include <cstring>

#include "harness/device_test.h"
#include "train/step/rank.h"

namespace bloomery::testing {
namespace {

constexpr std::int64_t kMicroBatches = 2, kSequences = 2, kLength = 64, kVocabulary = 93;

RankOptions small(DeviceKind device, DType dtype) {
  RankOptions options;
  options.model.num_layers = 2;
  options.model.hidden_size = 64;
  options.model.attention.num_heads = 4;
  options.model.vocabulary.size = kVocabulary;
  options.model.vocabulary.divisible_by = 8;
  options.model.positions.max_length = kLength;
  options.model.attention.dropout = options.model.residual.dropout = 0.1f;
  options.model.init.std = 0.1;
  options.dtype = dtype;
  options.device = {.kind = device, .num_threads = 1, .poison = true};
  options.graphs = GraphChoice::off;  // here the test captures
  options.optimizer.schedule.learning_rate = 1e-2;
  options.optimizer.schedule.train_length = 100;
  options.optimizer.schedule.warmup_length = 8;
  // Gradients in fp16 overflow in the first steps.
  options.optimizer.loss_scale = {.dynamic = true, .initial = 0x1p24, .window = 2, .hysteresis = 1};
  return options;
}

// Without dropout, so that attention may go to cuDNN.
RankOptions llama(RankOptions options) {
  ModelOptions& model = options.model;
  model.attention.dropout = model.residual.dropout = 0;
  model.attention.num_groups = 2;
  model.positions.rotary = true;
  model.norm.kind = NormKind::rms;
  model.mlp.kind = MlpKind::swiglu;
  model.bias = false;
  model.vocabulary.untied = true;
  model.residual.fp32 = true;
  return options;
}

RankOptions recomputed(RankOptions options) {
  options.recompute = {RecomputeOptions::Method::uniform, 1};
  return options;
}

RankOptions in_fp8(RankOptions options) {
  options.fp8.emplace();
  return options;
}

using Bytes = std::vector<unsigned char>;

// Everything that a step leaves behind.
struct Outcome {
  std::vector<Bytes> weights;  // and moments
  Bytes grads;
  StepState state;
};

class Runner {
 public:
  explicit Runner(const RankOptions& options) : rank_(options) {
    for (std::int64_t m = 0; m < kMicroBatches; ++m) {
      batches_.push_back(upload(host_batch(0, m), stream()));
    }
  }

  Stream& stream() { return rank_.stream(); }

  void step() {
    rank_.enqueue_gradients({kMicroBatches, [&](std::int64_t m) { return batches_[m]; }});
    rank_.enqueue_reduction();
    rank_.optimizer().squared_norm();
    rank_.optimizer().update(kMicroBatches * kSequences);
  }

  // The data of a step, in the memory that the last had: a graph knows no other.
  void feed(int step) {
    for (std::int64_t m = 0; m < kMicroBatches; ++m) {
      const HostBatch host = host_batch(step, m);
      const Batch& batch = batches_[static_cast<std::size_t>(m)];
      stream().copy(batch.tokens.data(), host.array<std::int32_t>("tokens").data(),
                    batch.tokens.bytes());
      stream().copy(batch.labels.data(), host.array<std::int32_t>("labels").data(),
                    batch.labels.bytes());
      stream().copy(batch.samples.data(), host.samples().data(), batch.samples.bytes());
      stream().synchronize();  // the host's numbers end here
    }
  }

  Outcome outcome() {
    Outcome found{.grads = to_bytes(stream(), rank_.optimizer().shards()[0].grad),
                  .state = rank_.optimizer().state()};
    for (const Tensor& tensor : weights()) {
      found.weights.push_back(to_bytes(stream(), tensor));
    }
    return found;
  }

  // Back to an earlier outcome, without its gradients.
  void restore(const Outcome& to) {
    const std::vector<Tensor> tensors = weights();
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      stream().copy(tensors[i].data(), to.weights[i].data(), tensors[i].bytes());
    }
    for (const Parameter* parameter : rank_.model().parameters()) {
      stream().fill(parameter->grad.data(), 0xFF, parameter->grad.bytes());
    }
    rank_.optimizer().set_state(to.state);
  }

 private:
  static HostBatch host_batch(int step, std::int64_t micro_batch) {
    return random_batch(kSequences, kLength, kVocabulary, 7,
                        (step * kMicroBatches + micro_batch) * kSequences);
  }

  std::vector<Tensor> weights() {
    const FlatShard& shard = rank_.optimizer().shards()[0];
    std::vector<Tensor> all = shard.state;
    for (const Tensor& tensor : {shard.master, shard.low, shard.value}) {
      if (tensor) {
        all.push_back(tensor);
      }
    }
    return all;
  }

  Rank rank_;
  std::vector<Batch> batches_;
};

void expect_equal(const Outcome& replayed, const Outcome& eager, int step) {
  EXPECT_TRUE(replayed.grads == eager.grads) << "gradients of step " << step;
  EXPECT_TRUE(replayed.weights == eager.weights) << "weights or moments after step " << step;
  EXPECT_EQ(replayed.state.num_steps, eager.state.num_steps) << step;
  EXPECT_EQ(replayed.state.num_skipped, eager.state.num_skipped) << step;
  EXPECT_EQ(replayed.state.loss_scale.scale, eager.state.loss_scale.scale) << step;
  EXPECT_EQ(replayed.state.learning_rate, eager.state.learning_rate) << step;
}

void check_replay(const RankOptions& options) {
  constexpr int kSteps = 8, kWarmUp = 3;
  Runner runner(options);
  Stream& stream = runner.stream();
  const auto asked = [&] { return stream.memory()->statistics().num_device_calls; };
  const Outcome start = runner.outcome();

  // Plans are made, and the pool gets all the memory that a step wants.
  for (int i = 0; i < kWarmUp; ++i) {
    runner.step();
  }
  const std::int64_t asked_before = asked();

  runner.restore(start);
  std::vector<Outcome> eager;
  for (int step = 0; step < kSteps; ++step) {
    runner.feed(step);
    runner.step();
    eager.push_back(runner.outcome());
  }
  EXPECT_GT(eager.back().state.num_steps, 2);
  EXPECT_EQ(eager.back().state.num_skipped > 0, options.dtype == DType::fp16);
  EXPECT_NE(eager.back().weights, start.weights);

  runner.restore(start);
  Graph graph;
  graph.capture(stream, [&] { runner.step(); });
  EXPECT_TRUE(runner.outcome().weights == start.weights) << "capturing runs nothing";
  for (int step = 0; step < kSteps; ++step) {
    runner.feed(step);
    graph.replay(stream);
    expect_equal(runner.outcome(), eager[static_cast<std::size_t>(step)], step);
  }
  EXPECT_EQ(asked(), asked_before) << "a warm step asks the device for no memory";
}

// The steps of a rank, as they come to pass in a run: three micro-batches, an evaluation, memory
// that somebody else holds for a while, and sequences of another length.
std::vector<Bytes> take_steps(Rank& rank) {
  constexpr int kSteps = 24;
  std::vector<Bytes> found;
  const auto add_numbers = [&](const std::vector<double>& numbers) {  // some of them may be NaN
    Bytes& bytes = found.emplace_back(numbers.size() * sizeof(double));
    std::memcpy(bytes.data(), numbers.data(), bytes.size());
  };
  std::vector<Tensor> held;
  for (int step = 0; step < kSteps; ++step) {
    const std::int64_t length = step < 14 ? kLength : kLength / 2;
    std::vector<HostBatch> batches;
    for (std::int64_t m = 0; m < 3; ++m) {
      batches.push_back(
          random_batch(kSequences, length, kVocabulary, 7, (step * 3 + m) * kSequences));
    }
    if (step == 8) {
      const Rank::Losses losses =
          rank.evaluate({1, [&](std::int64_t) { return rank.upload(batches[0]); }});
      add_numbers({losses.front().value});
      held.push_back(Tensor::zeros(rank.stream(), DType::fp32, {1 << 16}));
    }
    if (step == 12) {
      held.clear();
    }
    const Rank::Result result = rank.step(batches);
    add_numbers({result.loss, result.grad_norm});
    for (const Tensor& tensor : held) {
      found.push_back(to_bytes(rank.stream(), tensor));  // nobody has written there
    }
  }
  for (const FlatShard& shard : rank.optimizer().shards()) {
    found.push_back(to_bytes(rank.stream(), weights_of(shard, rank.stream())));
    found.push_back(to_bytes(rank.stream(), shard.state.back()));
  }
  return found;
}

void check_rank(RankOptions options) {
  Rank launched(options);
  options.graphs = GraphChoice::on;
  Rank replayed(options);
  EXPECT_TRUE(take_steps(launched) == take_steps(replayed));
  EXPECT_TRUE(replayed.runner().replays_graphs()) << replayed.runner().graph_verdict();
  EXPECT_FALSE(launched.runner().replays_graphs());
  const auto reserved = [](Rank& rank) {
    return static_cast<double>(rank.stream().memory()->statistics().peak_reserved_bytes);
  };
  EXPECT_LE(reserved(replayed), reserved(launched) + 4e6) << "graphs have no memory of their own";
}

class GptGraph : public DeviceTest {};
INSTANTIATE_TEST_SUITE_P(Devices, GptGraph, every_device(), device_label);

TEST_P(GptGraph, AReplayedStepEqualsAnEagerOne) {
  for (const DType dtype : {DType::fp32, DType::bf16, DType::fp16}) {
    const RankOptions options = small(GetParam(), dtype);
    for (const RankOptions& variant : {options, recomputed(options), llama(options)}) {
      check_replay(variant);
    }
  }
  check_replay(in_fp8(small(GetParam(), DType::bf16)));
}

TEST_P(GptGraph, ARankThatReplaysEqualsOneThatLaunches) {
  if (GetParam() != DeviceKind::cuda) {
    GTEST_SKIP() << "on the CPU nothing is replayed";
  }
  for (const DType dtype : {DType::fp32, DType::bf16, DType::fp16}) {
    const RankOptions options = small(GetParam(), dtype);
    for (const RankOptions& variant : {options, recomputed(options), llama(options)}) {
      check_rank(variant);
    }
  }
  check_rank(in_fp8(small(GetParam(), DType::bf16)));
}

}  // namespace
}  // namespace bloomery::testing
