// Curricula and random-LTD through the program: lengths and tokens of the log, runs that go on bit
// for bit, the numbers of one rank under other layouts, and what users may get wrong.
#include "run_case.h"

namespace bloomery {
namespace {

class CurriculumRun : public RunCase {};

constexpr const char* kLengths =
    "--curriculum-learning --curriculum-min-length 16 --curriculum-max-length 64 "
    "--curriculum-steps 6 --curriculum-length-step 16 ";
constexpr const char* kLtd =
    "--random-ltd --data-efficiency --data-routing --data-routing-random-ltd "
    "--random-ltd-total-layers 4 --random-ltd-num-layers 2 --random-ltd-layers 1 2 "
    "--random-ltd-min-tokens 16 --random-ltd-max-tokens 64 --random-ltd-steps 8 "
    "--random-ltd-token-step 16 ";

TEST_F(CurriculumRun, SequencesGrowAndTheRunGoesOnBitForBit) {
  const std::string log = goes_on("grown", kLengths);
  EXPECT_EQ(numbers(log, "curriculum seqlen: "),
            (std::vector<double>{16, 32, 32, 48, 48, 64, 64, 64, 64, 64}));
  EXPECT_EQ(numbers(log, "actual seqlen: "), numbers(log, "curriculum seqlen: "));
  EXPECT_EQ(numbers(log, "consumed tokens: ").back(), 8 * (16 + 64 + 96 + 5 * 64));
  goes_on("grown-2", std::string(kLengths) +
                         "--ranks-as-threads 2 --tensor-model-parallel-size 2 --sequence-parallel");
  same_losses(
      log,
      {"--ranks-as-threads 2 --pipeline-model-parallel-size 2",
       "--ranks-as-threads 2 --zero-stage 3", "--ranks-as-threads 2 --ds-sequence-parallel-size 2",
       "--ranks-as-threads 4 --tensor-model-parallel-size 2 --context-parallel-size 2"},
      kLengths);
}

TEST_F(CurriculumRun, TokensEndTheRunAndDriveTheSchedule) {
  const std::string flags = std::string(kLengths) +
                            "--train-samples 800 --train-tokens 1300 --lr-decay-tokens 2000 "
                            "--lr-warmup-tokens 128 --lr-decay-style linear --min-lr 0 ";
  const std::string log = train(flags);
  // 128, 256, 256, 384 and 384 tokens: the fifth step passes 1300.
  EXPECT_EQ(numbers(log, "consumed tokens: "), (std::vector<double>{128, 384, 640, 1024, 1408}));
  const std::vector<double> rates = numbers(log, "learning rate: ");
  EXPECT_NEAR(rates[0], 0.01, 1e-9);  // of the next step, at 128 tokens
  EXPECT_NEAR(rates[1], 0.01 * (1 - 256.0 / 1872), 1e-5);
  EXPECT_NEAR(rates[3], 0.01 * (1 - 896.0 / 1872), 1e-5);
}

TEST_F(CurriculumRun, LayersComputeSomeTokensAndTheRunGoesOnBitForBit) {
  const std::string log = goes_on("dropped", kLtd);
  EXPECT_EQ(numbers(log, "random ltd reserved length: "),
            (std::vector<double>{16, 16, 16, 32, 32, 32, 48, 48, 64, 64}));
  // (64 x 2 + kept x 2) / 4
  EXPECT_EQ(numbers(log, "actual seqlen: "),
            (std::vector<double>{40, 40, 40, 48, 48, 48, 56, 56, 64, 64}));
  goes_on("dropped-2", std::string(kLtd) +
                           "--ranks-as-threads 2 --tensor-model-parallel-size 2 "
                           "--sequence-parallel --hidden-dropout 0.2");
  same_losses(log,
              {"--ranks-as-threads 2 --pipeline-model-parallel-size 2",
               "--ranks-as-threads 2 --tensor-model-parallel-size 2",
               "--ranks-as-threads 2 --tensor-model-parallel-size 2 --sequence-parallel",
               "--ranks-as-threads 2 --zero-stage 3",
               "--recompute-granularity full --recompute-method uniform"},
              kLtd);
  const std::string plain = train("--train-iters 10");
  EXPECT_NE(numbers(log, "lm loss: "), numbers(plain, "lm loss: "));
}

TEST_F(CurriculumRun, SamplesAreChosenByDifficultyAndTheRunGoesOnBitForBit) {
  const std::string analyze =
      concat("data analyze --analyzing-data-type GPT --analyzing-num-threads 2 --save ",
             at("analysis"), data());
  for (const char* metric : {"total_vocab_freq", "vocab_rarity"}) {
    for (const char* task : {"map", "reduce"}) {
      expect_command(
          words(concat(analyze, "--analyzing-task ", task, " --analyzing-metric ", metric)));
    }
  }
  const std::string rarity = at("analysis") + "/vocab_rarity/vocab_rarity_";
  std::ofstream(at("ds.json")) << R"({"train_micro_batch_size_per_gpu": 2, "data_efficiency":
    {"enabled": true, "seed": 1234, "data_sampling": {"enabled": true, "num_workers": 0,
     "curriculum_learning": {"enabled": true, "data_cluster_path": ")"
                               << at("clusters") << R"(", "curriculum_metrics": {
     "voc": {"index_to_sample_path": ")"
                               << rarity << R"(index_to_sample_percentile_merged",
       "index_to_metric_path": ")"
                               << rarity << R"(index_to_metric", "difficulty_type":
       "percentile", "clustering_type": "schedule_based", "min_difficulty": 1,
       "max_difficulty": 10, "schedule_type": "fixed_root", "schedule_config":
       {"total_curriculum_step": 8, "difficulty_step": 1, "root_degree": 2}},
     "seqlen_reshape": {"index_to_sample_path": "dummy", "index_to_metric_path": "dummy",
       "difficulty_type": "value", "clustering_type": "single_cluster", "min_difficulty": 16,
       "max_difficulty": 64, "schedule_type": "fixed_linear", "schedule_config":
       {"total_curriculum_step": 6, "difficulty_step": 16}}}}}}})";
  const std::string flags = concat("--deepspeed --deepspeed_config ", at("ds.json"),
                                   " --data-efficiency-curriculum-learning ");
  const std::string log = goes_on("chosen", flags);
  EXPECT_EQ(numbers(log, "curriculum seqlen: ").front(), 16);
  // Samples of 65 tokens make 3 rows of 17 and one of their ends: of two samples 8.
  EXPECT_EQ(numbers(log, "consumed tokens: ").front(), 4 * 8 * 16);
  EXPECT_TRUE(std::filesystem::exists(at("clusters") + "/cluster_voc4_seqlen_reshape16.bin"));
  goes_on("chosen-2", flags + "--ranks-as-threads 2 --zero-stage 1");
  same_losses(log, {"--ranks-as-threads 2 --pipeline-model-parallel-size 2"}, flags);
}

TEST_F(CurriculumRun, SaysWhatDoesNotFit) {
  const auto refuses = [&](const std::string& flags, const std::string& part) {
    const std::string said = train(flags + " --train-iters 10", kBadInput);
    EXPECT_NE(said.find(part), said.npos) << said;
  };
  refuses("--curriculum-learning", "total_curriculum_step must be from 1 on");
  refuses(std::string(kLengths) + "--ranks-as-threads 32 --context-parallel-size 16",
          "cannot be divided among the ranks");
  refuses(std::string(kLtd) + "--ranks-as-threads 2 --ds-sequence-parallel-size 2",
          "tokens cannot be dropped of sequences that are divided");
  refuses(std::string(kLtd) + "--random-ltd-layers 1 4", "different layers, 0 to 3");
  refuses(
      "--data-efficiency-curriculum-learning --data-efficiency --data-sampling "
      "--data-sampling-curriculum --curriculum-metrics {}",
      "needs at least one metric");
}

}  // namespace
}  // namespace bloomery
