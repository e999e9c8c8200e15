// The memory that a plan foresees against what the pool of a real run says.
#include "train/plan/planned_rank.h"

#include <gtest/gtest.h>

#include <chrono>

#include "comm/threads.h"
#include "samples/language_model_dataset.h"
#include "train/plan/options_case.h"

namespace bloomery {
namespace {

Plan plan_of(const std::vector<std::string>& flags, std::int64_t vocabulary) {
  std::vector<std::string> all = {"--data-path", "corpus", "--lr", "1e-3", "--train-iters", "1"};
  all.insert(all.end(), flags.begin(), flags.end());
  const PretrainCase c(all);
  EXPECT_EQ(c.error, "");
  return make_plan(c.options, vocabulary);
}

PlannedMemory memory_of(const Plan& plan, DeviceKind kind = DeviceKind::cpu) {
  return plan_memory(plan, language_model_fields(plan.seq_length, {}), kind);
}

// Of the first rank, in a step.
std::size_t real_peak(const Plan& plan) {
  std::size_t peak = 0;
  RankOptions options = plan.rank;
  options.device = {.num_threads = 1};
  run_ranks(
      static_cast<int>(plan.data_ranks), [&](int number, std::unique_ptr<Communicator> world) {
        Rank rank(options, std::move(world));
        const std::vector<HostBatch> batches(
            static_cast<std::size_t>(plan.num_micro_batches(0)),
            random_batch(plan.micro_batch, plan.seq_length, plan.rank.model.vocabulary.size, 1, 0));
        for (int step = 0; step < 2; ++step) {
          rank.step(batches);
        }
        if (number == 0) {
          peak = rank.stream().memory()->statistics().peak_used_bytes;
        }
      });
  return peak;
}

// Of each layer's input a rank keeps a half; the last that comes back is whole.
TEST(PlannedMemory, InputsDividedAmongTensorRanksTakeLess) {
  const auto activations = [](const char* flag) {
    return memory_of(plan_of({"--num-layers", "12", "--hidden-size", "256", "--seq-length", "256",
                              "--num-attention-heads", "4", "--micro-batch-size", "4",
                              "--tensor-model-parallel-size", "2", "--ranks-as-threads", "2",
                              "--checkpoint-activations", flag},
                             1500))
        .activations;
  };
  constexpr std::int64_t input = std::int64_t{4} * 256 * 256 * 4;
  const std::int64_t whole = activations("--no-partition-activations");
  EXPECT_LE(activations("--partition-activations") + 4 * input, whole);
  EXPECT_EQ(activations("--distribute-saved-activations"), activations("--partition-activations"));
}

TEST(PlannedMemory, IsThatOfARealRun) {
  const std::vector<std::string> cases[] = {
      {},
      {"--bf16", "--global-batch-size", "12"},
      {"--bf16", "--fp32-residual-connection", "--optimizer", "sgd"},
      {"--bf16", "--optimizer", "lion", "--ranks-as-threads", "2", "--zero-stage", "1"},
      {"--checkpoint-activations"},
      {"--bf16", "--recompute-granularity", "full", "--recompute-method", "block",
       "--recompute-num-layers", "3"},
      {"--model-family", "llama", "--bf16", "--num-key-value-heads", "2"},
      {"--model-family", "neox", "--hidden-dropout", "0.1", "--attention-dropout", "0.1"},
      {"--ranks-as-threads", "2", "--zero-stage", "0", "--bf16"},
      {"--ranks-as-threads", "2", "--zero-stage", "1", "--bf16"},
      {"--ranks-as-threads", "2", "--zero-stage", "2", "--bf16", "--global-batch-size", "16"},
      {"--ranks-as-threads", "2", "--zero-stage", "3", "--checkpoint-activations"},
  };
  for (const std::vector<std::string>& flags : cases) {
    std::vector<std::string> all = {"--num-layers",       "6",   "--hidden-size",         "192",
                                    "--seq-length",       "128", "--num-attention-heads", "4",
                                    "--micro-batch-size", "4"};
    all.insert(all.end(), flags.begin(), flags.end());
    const Plan plan = plan_of(all, 1501);
    const auto planned = static_cast<double>(memory_of(plan).total());
    const auto real = static_cast<double>(real_peak(plan));
    EXPECT_LT(planned, real);  // by the scratch of kernels
    EXPECT_GT(planned, 0.97 * real) << ::testing::PrintToString(flags);
  }
}

// Layers have 12 x 512^2 weights each: of 16 bits, of 8 and a scale per row, of 4 and one
// for 64.
TEST(PlannedMemory, WeightsInFewerBitsTakeLess) {
  const auto parameters = [](const std::string& format) {
    return memory_of(plan_of({"--num-layers", "4", "--hidden-size", "512", "--seq-length", "64",
                              "--num-attention-heads", "8", "--micro-batch-size", "1", "--bf16",
                              "--lora", "--quantize-base", format},
                             101))
        .parameters;
  };
  constexpr std::int64_t kWeights = std::int64_t{4} * 12 * 512 * 512;
  constexpr std::int64_t kRows = std::int64_t{4} * (3 + 1 + 4 + 1) * 512;
  const std::int64_t whole = parameters("none");
  EXPECT_EQ(whole - parameters("int8"), kWeights - 2 * kRows);
  EXPECT_EQ(whole - parameters("nf4"), kWeights * 3 / 2 - kWeights / 64 * 2);
}

TEST(PlannedMemory, RecomputationKeepsLess) {
  const auto activations = [](const std::vector<std::string>& flags) {
    std::vector<std::string> all = {"--num-layers",       "12",  "--hidden-size",         "64",
                                    "--seq-length",       "128", "--num-attention-heads", "4",
                                    "--micro-batch-size", "8"};
    all.insert(all.end(), flags.begin(), flags.end());
    return memory_of(plan_of(all, 301)).activations;
  };
  const std::int64_t all = activations({});
  EXPECT_LT(activations({"--checkpoint-activations"}), all / 3);
  EXPECT_EQ(activations({"--recompute-granularity", "full", "--recompute-method", "uniform"}),
            activations({"--checkpoint-activations"}));
  EXPECT_EQ(activations({"--activations-checkpoint-method", "uniform"}),
            activations({"--checkpoint-activations"}));
  const std::int64_t half = activations({"--recompute-granularity", "full", "--recompute-method",
                                         "block", "--recompute-num-layers", "6"});
  EXPECT_GT(half, all / 2);
  EXPECT_LT(half, all);
  EXPECT_LT(activations({"--recompute-activations"}), all * 3 / 4);
}

// Models that no machine here could hold, within a second or two.
TEST(PlannedMemory, OfLargeModelsTakesNone) {
  const auto start = std::chrono::steady_clock::now();
  const auto memory = [](const char* size, const char* stage) {
    const Plan plan = plan_of({"--model-size", size, "--seq-length", "2048", "--micro-batch-size",
                               "4", "--bf16", "--ranks-as-threads", "8", "--zero-stage", stage},
                              51200);
    return memory_of(plan, DeviceKind::cuda);
  };
  const PlannedMemory whole = memory("7.5B", "0"), cut = memory("7.5B", "3");
  EXPECT_NEAR(static_cast<double>(whole.parameters), 2 * 7.468e9, 2e7);
  EXPECT_EQ(whole.gradients, 2 * whole.parameters);
  EXPECT_EQ(whole.optimizer, 5 * whole.parameters);
  EXPECT_NEAR(static_cast<double>(cut.parameters), static_cast<double>(whole.parameters) / 8, 1e6);
  EXPECT_EQ(cut.gradients, 2 * cut.parameters);
  EXPECT_EQ(cut.optimizer, 5 * cut.parameters);
  EXPECT_NEAR(static_cast<double>(memory("1008B", "3").parameters), 2 * 1008e9 / 8, 1e9);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
  EXPECT_LT(elapsed.count(), 30);  // under sanitizers too
}

}  // namespace
}  // namespace bloomery
