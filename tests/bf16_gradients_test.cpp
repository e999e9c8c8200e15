// Training with gradients that are kept in bf16: as with fp32 but for their rounding, in half the
// memory, on every layout.
#include <gtest/gtest.h>

#include "comm/threads.h"
#include "train/parity/layout_text.h"
#include "train/step/rank.h"

namespace bloomery::testing {
namespace {

constexpr int kMicroBatches = 4;

RankOptions tiny(DType gradients) {
  RankOptions options;
  options.model.num_layers = 2;
  options.model.hidden_size = 64;
  options.model.attention.num_heads = 4;
  options.model.vocabulary.size = 93;
  options.model.vocabulary.divisible_by = 8;
  options.model.positions.max_length = 16;
  options.model.init.std = 0.1;
  options.dtype = DType::bf16;
  options.replicas.grad_dtype = gradients;
  options.device = {.num_threads = 1, .poison = true};
  options.optimizer.schedule.learning_rate = 2e-3;
  options.optimizer.schedule.decay_style = DecayStyle::constant;
  return options;
}

struct Training {
  std::vector<Rank::Result> results;
  std::size_t gradient_bytes = 0;
};

Training train(const RankOptions& options, int num_steps) {
  const int replicas = options.layout.degrees.data;
  Training run;
  run_ranks(options.layout.degrees.num_ranks(), [&](int, std::unique_ptr<Communicator> world) {
    Rank rank(options, std::move(world));
    const int replica = rank.mesh().coordinate(Axis::data);
    std::vector<Rank::Result> results;
    for (int step = 0; step < num_steps; ++step) {
      std::vector<HostBatch> batches;
      for (int m = replica; m < kMicroBatches; m += replicas) {
        batches.push_back(random_batch(2, 16, 93, 7, (step % 4 * kMicroBatches + m) * 2));
      }
      results.push_back(rank.step(batches));
    }
    if (rank.mesh().world().rank() == 0) {
      run = {std::move(results), rank.store().bytes().gradients};
    }
  });
  return run;
}

void expect_close(const Training& a, const Training& b, double tolerance, const std::string& what) {
  ASSERT_EQ(a.results.size(), b.results.size());
  for (std::size_t i = 0; i < a.results.size(); ++i) {
    EXPECT_NEAR(a.results[i].loss, b.results[i].loss, tolerance * b.results[i].loss)
        << what << ", step " << i;
    EXPECT_NEAR(a.results[i].grad_norm, b.results[i].grad_norm,
                4 * tolerance * b.results[i].grad_norm)
        << what << ", step " << i;
  }
}

TEST(Bf16Gradients, TrainAsInFp32InHalfTheMemory) {
  const Training fp32 = train(tiny(DType::fp32), 40), bf16 = train(tiny(DType::bf16), 40);
  EXPECT_EQ(2 * bf16.gradient_bytes, fp32.gradient_bytes);
  expect_close(bf16, fp32, 0.02, "bf16");
  EXPECT_LT(bf16.results.back().loss, 0.9 * bf16.results.front().loss);
  EXPECT_NE(bf16.results.back().grad_norm, fp32.results.back().grad_norm);
  const Training again = train(tiny(DType::bf16), 40);
  EXPECT_EQ(again.results.back().loss, bf16.results.back().loss);
  EXPECT_EQ(again.results.back().grad_norm, bf16.results.back().grad_norm);
}

TEST(Bf16Gradients, OfEveryLayoutAreCloseToThoseOfOneRank) {
  RankOptions options = tiny(DType::bf16);
  const Training one = train(options, 4);
  for (const char* layout : {"tp2", "tp2sp", "pp2", "pp2zb", "dp2", "dp2z1", "dp2z2", "dp2z3"}) {
    options.layout = parse_layout(layout);
    expect_close(train(options, 4), one, 5e-3, layout);
  }
}

TEST(Bf16Gradients, EqualThoseOfTheCpuOnCuda) {
  if (num_cuda_devices() == 0) {
    GTEST_SKIP() << "no GPU on this machine";
  }
  RankOptions options = tiny(DType::bf16);
  const Training cpu = train(options, 8);
  options.device.kind = DeviceKind::cuda;
  expect_close(train(options, 8), cpu, 5e-3, "CUDA");
}

TEST(Bf16Gradients, GoWithValuesInBf16) {
  for (const DType dtype : {DType::fp32, DType::fp16}) {
    RankOptions options = tiny(DType::bf16);
    options.dtype = dtype;
    EXPECT_THROW(Rank{options}, Error) << dtype;
  }
}

}  // namespace
}  // namespace bloomery::testing
