// What four ranks hold under each stage of ZeRO: as arithmetic has it, as the store says, and as
// the allocator counts it.
#include "train/plan/state_memory.h"

#include <gtest/gtest.h>

#include "comm/threads.h"

namespace bloomery {
namespace {

constexpr int kRanks = 4;
constexpr std::int64_t kVocabulary = 64, kLength = 8, kHidden = 64;
constexpr std::int64_t kLayer = 12 * kHidden * kHidden + 13 * kHidden;  // elements

RankOptions options_of(int stage, DType dtype) {
  RankOptions o;
  o.model.num_layers = 16;
  o.model.hidden_size = kHidden;
  o.model.attention.num_heads = o.model.attention.num_groups = 4;
  o.model.vocabulary.size = kVocabulary;
  o.model.positions.max_length = kLength;
  o.dtype = dtype;
  o.device.num_threads = 1;
  o.replicas.bucket_elements = kLayer * 21 / 20;
  o.layout = {.degrees = {.data = kRanks}, .sharded = Sharding::of_stage(stage)};
  return o;
}

struct Measured {
  StateMemory expected, allocated;
  std::int64_t blocks = 0;      // the two buffers of stage 3
  std::int64_t used = 0;        // by the allocator, before the first step
  std::int64_t peak = 0;        // in the third, when the order of uses is known
  std::int64_t model_size = 0;  // elements
};

Measured measure(int stage, DType dtype, bool overlaps = true, DType gradients = DType::fp32) {
  Measured result;
  run_ranks(kRanks, [&](int number, std::unique_ptr<Communicator> world) {
    RankOptions options = options_of(stage, dtype);
    options.replicas.grad_dtype = gradients;
    options.replicas.overlap_gathers = options.replicas.overlap_reductions = overlaps;
    Rank rank(options, std::move(world));
    MemoryPool& pool = *rank.stream().memory();
    Measured mine{expected_state(rank), allocated_state(rank)};
    mine.blocks = static_cast<std::int64_t>(rank.store().bytes().blocks);
    mine.used = static_cast<std::int64_t>(pool.statistics().used_bytes);
    const HostBatch batch = random_batch(1, kLength, kVocabulary, 1, number);
    for (int step = 0; step < 3; ++step) {
      pool.reset_peak();
      rank.step(std::span(&batch, 1));
    }
    mine.peak = static_cast<std::int64_t>(pool.statistics().peak_used_bytes);
    for (const Parameter* parameter : rank.parameters()) {
      mine.model_size += parameter->local_shape.numel();
    }
    if (number == 0) {
      result = mine;
    }
  });
  return result;
}

void expect_within(std::int64_t got, std::int64_t wanted, double share) {
  EXPECT_NEAR(static_cast<double>(got), static_cast<double>(wanted),
              share * static_cast<double>(wanted));
}

TEST(StateMemory, IsWhatArithmeticSays) {
  for (const DType dtype : {DType::fp32, DType::bf16}) {
    for (int stage = 0; stage <= 3; ++stage) {
      SCOPED_TRACE(concat("stage ", stage, " in ", dtype));
      const Measured m = measure(stage, dtype);
      const std::int64_t n = m.model_size, value = dtype == DType::bf16 ? 2 : 4;
      const std::int64_t state = dtype == DType::bf16 ? 10 : 8;
      expect_within(m.expected.parameters, n * value / (stage >= 3 ? kRanks : 1), 0.001);
      expect_within(m.expected.gradients, n * 4 / (stage >= 2 ? kRanks : 1), 0.001);
      expect_within(m.expected.optimizer, n * state / (stage >= 1 ? kRanks : 1), 0.001);
      expect_within(m.allocated.parameters, m.expected.parameters, 0.05);
      expect_within(m.allocated.gradients, m.expected.gradients, 0.05);
      expect_within(m.allocated.optimizer, m.expected.optimizer, 0.05);
      expect_within(m.used, m.expected.total() + m.blocks, 0.05);
    }
  }
}

TEST(StateMemory, GradientsInBf16TakeHalf) {
  for (const int stage : {0, 2}) {
    const Measured fp32 = measure(stage, DType::bf16);
    const Measured bf16 = measure(stage, DType::bf16, true, DType::bf16);
    EXPECT_EQ(2 * bf16.expected.gradients, fp32.expected.gradients);
    EXPECT_EQ(2 * bf16.allocated.gradients, fp32.allocated.gradients);
    EXPECT_EQ(bf16.expected.optimizer, fp32.expected.optimizer);
  }
}

// A layer's values are whole in two buffers, and its gradients while they are made and summed.
TEST(StateMemory, OfStageThreePeaksWithTwoBlocksBesideTheShards) {
  for (const DType dtype : {DType::fp32, DType::bf16}) {
    const Measured whole = measure(0, dtype), cut = measure(3, dtype);
    const std::int64_t value = dtype == DType::bf16 ? 2 : 4;
    expect_within(cut.blocks, 2 * kLayer * value, 0.05);
    const std::int64_t activations = whole.peak - whole.used;
    const std::int64_t most = cut.used + 2 * kLayer * 4 + activations;
    EXPECT_LE(cut.peak, most + most / 20);
    EXPECT_GE(cut.peak, cut.used + kLayer * 4);
    EXPECT_LT(cut.peak, whole.peak / 2);
  }
}

TEST(StateMemory, GrowsByOneBucketForTheOverlap) {
  for (int stage = 1; stage <= 3; ++stage) {
    const Measured with = measure(stage, DType::bf16), without = measure(stage, DType::bf16, false);
    EXPECT_EQ(with.used, without.used);
    EXPECT_LE(with.peak, without.peak + kLayer * 4 * 21 / 20) << "one bucket of gradients";
  }
}

}  // namespace
}  // namespace bloomery
