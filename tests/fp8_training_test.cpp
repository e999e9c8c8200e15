// Whole training steps with linear layers in 8 bits: they learn as in bf16, layouts agree, and what
// recomputes or defers changes no bit.
#include <gtest/gtest.h>

#include <cmath>
#include <mutex>

#include "comm/threads.h"
#include "device/launch.h"
#include "train/parity/layout_text.h"
#include "train/step/rank.h"

namespace bloomery::testing {
namespace {

constexpr std::int64_t kSequences = 2, kLength = 32, kVocabulary = 93;
constexpr int kMicroBatches = 4;

RankOptions tiny(const std::optional<Fp8Options>& fp8) {
  RankOptions options;
  options.model.num_layers = 4;
  options.model.hidden_size = 64;
  options.model.attention.num_heads = 4;
  options.model.vocabulary.size = kVocabulary;
  options.model.vocabulary.divisible_by = 8;
  options.model.positions.max_length = kLength;
  options.dtype = DType::bf16;
  options.fp8 = fp8;
  options.device = {.num_threads = 1, .poison = true};
  options.optimizer.schedule.learning_rate = 1e-3;
  options.optimizer.schedule.decay_style = DecayStyle::constant;
  return options;
}

// The same few samples again and again, so that there is something to learn.
std::vector<HostBatch> step_batches(int step, int data_rank, int data_ranks) {
  std::vector<HostBatch> batches;
  for (int m = data_rank; m < kMicroBatches; m += data_ranks) {
    batches.push_back(random_batch(kSequences, kLength, kVocabulary, 7,
                                   (step % 4 * kMicroBatches + m) * kSequences));
  }
  return batches;
}

std::vector<Rank::Result> train(const RankOptions& options, int num_steps) {
  std::vector<Rank::Result> results;
  std::mutex mutex;
  const auto body = [&](int number, std::unique_ptr<Communicator> world) {
    Rank rank(options, std::move(world));
    const int data = rank.mesh().coordinate(Axis::data), ranks = rank.mesh().degree(Axis::data);
    std::vector<Rank::Result> mine;
    for (int step = 0; step < num_steps; ++step) {
      mine.push_back(rank.step(step_batches(step, data, ranks)));
    }
    const std::lock_guard lock(mutex);
    if (number == 0) {
      results = mine;
    }
  };
  run_ranks(options.layout.degrees.num_ranks(), body, {.timeout_seconds = 300});
  return results;
}

double mean_of_last(const std::vector<Rank::Result>& results, int count) {
  double sum = 0;
  for (std::size_t i = results.size() - static_cast<std::size_t>(count); i < results.size(); ++i) {
    sum += results[i].loss;
  }
  return sum / count;
}

// Single runs of 100 steps differ by a hundredth or two of their loss, on which processor they run
// too.
TEST(Fp8Training, LearnsAsInBf16) {
  const std::vector<Rank::Result> bf16 = train(tiny({}), 100);
  EXPECT_LT(mean_of_last(bf16, 8), 0.8 * bf16.front().loss);
  const Fp8Options max{.history = 16, .amax = Fp8Amax::largest};
  const Fp8Options current{.gradients = Fp8Format::e4m3, .recipe = Fp8Recipe::current};
  const Fp8Options interval{.weight_gradients = false, .margin = 1, .interval = 3};
  for (const Fp8Options& fp8 : {Fp8Options{}, max, current, interval}) {
    const std::vector<Rank::Result> eight = train(tiny(fp8), 100);
    EXPECT_NEAR(mean_of_last(eight, 8), mean_of_last(bf16, 8), 0.1);
    EXPECT_NE(eight.back().loss, bf16.back().loss);
  }
}

void expect_close(const std::vector<Rank::Result>& a, const std::vector<Rank::Result>& b,
                  double tolerance, const std::string& what) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_NEAR(a[i].loss, b[i].loss, tolerance * b[i].loss) << what << ", step " << i;
    EXPECT_NEAR(a[i].grad_norm, b[i].grad_norm, 5 * tolerance * b[i].grad_norm)
        << what << ", step " << i;
  }
}

// Scales are the same wherever a tensor lies. Data ranks add gradients in another order, so that a
// bf16 weight may round the other way; tensor ranks round their parts of sums to bf16. In 8 bits a
// rounding more or less moves some numbers by a whole step.
TEST(Fp8Training, LayoutsAreCloseToOneRank) {
  RankOptions options = tiny(Fp8Options{});
  const std::vector<Rank::Result> one = train(options, 4);
  for (const char* layout : {"pp2", "pp2zb"}) {
    options.layout = parse_layout(layout);
    expect_close(train(options, 4), one, 1e-5, layout);
  }
  for (const char* layout : {"dp2z1", "dp2z3"}) {
    options.layout = parse_layout(layout);
    expect_close(train(options, 4), one, 4e-4, layout);
  }
  for (const char* layout : {"tp2", "tp2sp", "ul2", "tp2+pp2"}) {
    options.layout = parse_layout(layout);
    expect_close(train(options, 4), one, 4e-3, layout);
  }
}

TEST(Fp8Training, RecomputingAndDeferringChangeNoBit) {
  for (const Fp8Recipe recipe : {Fp8Recipe::delayed, Fp8Recipe::current}) {
    RankOptions options = tiny(Fp8Options{.recipe = recipe});
    options.model.attention.dropout = options.model.residual.dropout = 0.1f;
    const std::vector<Rank::Result> plain = train(options, 4);
    std::vector<RankOptions> others(3, options);
    others[0].recompute = {RecomputeOptions::Method::uniform, 2};
    others[1].recompute = {.cheap_values = true};
    others[2].layout.schedule = PipelineSchedule::zero_bubble;
    for (const RankOptions& other : others) {
      expect_close(train(other, 4), plain, 0, "");
    }
  }
}

TEST(Fp8Training, EvaluatesInEightBitsToo) {
  const auto evaluate = [](const RankOptions& options) {
    Rank rank(options);
    rank.step(step_batches(0, 0, 1));
    const std::vector<HostBatch> batches = step_batches(3, 0, 1);
    return rank
        .evaluate(
            {kMicroBatches,
             [&](std::int64_t m) { return rank.upload(batches[static_cast<std::size_t>(m)]); }})
        .front()
        .value;
  };
  const double eight = evaluate(tiny(Fp8Options{})), sixteen = evaluate(tiny({}));
  EXPECT_NEAR(eight, sixteen, 0.01 * sixteen);
  EXPECT_NE(eight, sixteen);
}

TEST(Fp8Training, NeedsBf16) {
  RankOptions options = tiny(Fp8Options{});
  options.dtype = DType::fp16;
  EXPECT_THROW(Rank rank(options), Error);
}

struct Cost {
  double flops = 0;
  std::size_t used = 0, saved = 0;
};
Cost cost_of(RankOptions options, DeviceKind kind) {
  options.device = {.kind = kind, .num_threads = 1};
  Rank rank(options);
  rank.runner().executor().tape_report.emplace();
  const HostBatch host = random_batch(8, kLength, kVocabulary, 7, 0);
  rank.enqueue_gradients({1, [&](std::int64_t) { return rank.upload(host); }});
  return {rank.stream().device().service<FlopCount>().total,
          rank.stream().memory()->statistics().used_bytes,
          rank.runner().executor().tape_report->saved_bytes};
}

TEST(Fp8Training, IsPlannedOnTheAbstractDevice) {
  const Cost sixteen = cost_of(tiny({}), DeviceKind::abstract);
  const Cost eight = cost_of(tiny(Fp8Options{}), DeviceKind::abstract);
  const Cost real = cost_of(tiny(Fp8Options{}), DeviceKind::cpu);
  EXPECT_EQ(eight.flops, sixteen.flops);
  EXPECT_EQ(eight.used, real.used);
  EXPECT_EQ(eight.saved, real.saved);
  EXPECT_LT(eight.saved, sixteen.saved);
}

TEST(Fp8Training, CudaIsCloseToTheCpu) {
  if (num_cuda_devices() == 0) {
    GTEST_SKIP() << "no GPU on this machine";
  }
  for (const Fp8Recipe recipe : {Fp8Recipe::delayed, Fp8Recipe::current}) {
    RankOptions options = tiny(Fp8Options{.recipe = recipe});
    const std::vector<Rank::Result> cpu = train(options, 3);
    options.device.kind = DeviceKind::cuda;
    const std::vector<Rank::Result> plain = train(options, 4);
    expect_close({plain.begin(), plain.begin() + 3}, cpu, 8e-3, "cuda");
    expect_close(train(options, 4), plain, 0, "once more");
    options.recompute = {RecomputeOptions::Method::uniform, 1};
    expect_close(train(options, 4), plain, 0, "recomputed");
  }
}

}  // namespace
}  // namespace bloomery::testing
