// A GPT on the abstract device: what a step takes, without taking it.
#include <gtest/gtest.h>

#include <chrono>

#include "device/launch.h"
#include "train/step/rank.h"

namespace bloomery::testing {
namespace {

RankOptions options_of(int layers, std::int64_t hidden, std::int64_t heads, DType dtype) {
  RankOptions options;
  options.model.num_layers = layers;
  options.model.hidden_size = hidden;
  options.model.attention.num_heads = heads;
  options.model.vocabulary.size = 1024;
  options.model.positions.max_length = 1024;
  options.dtype = dtype;
  options.device = {.kind = DeviceKind::abstract, .num_threads = 2};
  return options;
}

struct Cost {
  std::int64_t parameters = 0;
  double flops = 0;
  MemoryStatistics memory;
};

Cost cost_of(const RankOptions& options, std::int64_t sequences, std::int64_t length) {
  Rank rank(options);
  const HostBatch host = random_batch(sequences, length, options.model.vocabulary.size, 7, 0);
  rank.enqueue_gradients({1, [&](std::int64_t) { return rank.upload(host); }});
  return {.parameters = num_parameters(options.model),
          .flops = rank.stream().device().service<FlopCount>().total,
          .memory = rank.stream().memory()->statistics()};
}

// Products with every weight once in forward and twice in backward, and attention's two likewise.
double expected_flops(const ModelOptions& o, std::int64_t sequences, std::int64_t length) {
  const auto hidden = static_cast<double>(o.hidden_size);
  const double tokens = static_cast<double>(sequences) * static_cast<double>(length);
  const double layer = 12 * hidden * hidden + 2 * static_cast<double>(length) * hidden;
  return 3 * 2 * tokens *
         (static_cast<double>(o.num_layers) * layer +
          static_cast<double>(o.vocabulary.size) * hidden);
}

// Kernels on the CPU take a little scratch of their own.
TEST(AbstractGpt, TakesTheMemoryOfTheCpuAndTheFlopsOfTheFormula) {
  RankOptions options = options_of(4, 128, 4, DType::fp32);
  for (const bool recompute : {false, true}) {
    if (recompute) {
      options.recompute = {RecomputeOptions::Method::uniform, 1};
    }
    options.device.kind = DeviceKind::abstract;
    const Cost abstract = cost_of(options, 32, 256);
    options.device.kind = DeviceKind::cpu;
    const Cost real = cost_of(options, 32, 256);
    const auto peak = static_cast<double>(real.memory.peak_used_bytes);
    EXPECT_NEAR(static_cast<double>(abstract.memory.peak_used_bytes), peak, 0.01 * peak);
    EXPECT_EQ(abstract.memory.used_bytes, real.memory.used_bytes);
    EXPECT_EQ(real.flops, 0);
    if (!recompute) {
      EXPECT_EQ(abstract.flops, expected_flops(options.model, 32, 256));
    }
  }
}

TEST(AbstractGpt, LargeModelsCostNothing) {
  RankOptions options = options_of(36, 4096, 32, DType::bf16);
  options.model.vocabulary.size = 51200;
  options.model.positions.max_length = 2048;
  options.device.stands_for = DeviceKind::cuda;
  const auto start = std::chrono::steady_clock::now();
  const Cost cost = cost_of(options, 4, 2048);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  EXPECT_EQ(cost.parameters, 7'467'786'240);
  EXPECT_EQ(cost.flops, expected_flops(options.model, 4, 2048));
  // Weights, fp32 copies, gradients and moments alone: 18 bytes each.
  EXPECT_GT(cost.memory.peak_used_bytes, 18u * 7'400'000'000u);
  EXPECT_LT(elapsed.count(), 20);  // under sanitizers too; the passes themselves take milliseconds
}

}  // namespace
}  // namespace bloomery::testing
