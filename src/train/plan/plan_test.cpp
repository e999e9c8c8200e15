#include "train/plan/plan.h"

#include <gtest/gtest.h>

#include "comm/communicator.h"
#include "parallel/vocab_embedding.h"
#include "train/plan/model_sizes.h"
#include "train/plan/options_case.h"

namespace bloomery {
namespace {

ModelOptions preset(const std::string& name, std::int64_t vocabulary, std::int64_t positions) {
  const ModelSize& size = find_model_size(name);
  ModelOptions options;
  options.num_layers = size.num_layers;
  options.hidden_size = size.hidden_size;
  options.attention.num_heads = size.num_attention_heads;
  options.vocabulary.size = vocabulary;
  options.positions.max_length = positions;
  return options;
}

TEST(Plan, ParametersOfKnownModels) {
  EXPECT_EQ(count_parameters(preset("124M", 50257, 1024)).total, 124439808);
  EXPECT_EQ(count_parameters(preset("gpt2-medium", 50257, 1024)).total, 354823168);
  EXPECT_EQ(count_parameters(preset("gpt2-large", 50257, 1024)).total, 774030080);
  EXPECT_EQ(count_parameters(preset("gpt2-xl", 50257, 1024)).total, 1557611200);
}

// The names of Megatron's table are its formula 12 L h^2 (1 + 13/(12 h) + (V + s)/(12 L h)).
TEST(Plan, PresetsHaveTheSizeOfTheirNames) {
  for (const char* name :
       {"1.7B", "3.6B", "7.5B", "18.4B", "39.1B", "76.1B", "145.6B", "310.1B", "529.6B", "1008B"}) {
    const ModelOptions o = preset(name, 51200, 2048);
    const double billions = static_cast<double>(count_parameters(o).total) / 1e9;
    EXPECT_NEAR(billions, std::stod(name), std::stod(name) > 1000 ? 0.5 : 0.051) << name;
    const auto h = static_cast<double>(o.hidden_size), layers = static_cast<double>(o.num_layers);
    const double formula =
        12 * layers * h * h * (1 + 13 / (12 * h) + (51200 + 2048) / (12 * layers * h));
    EXPECT_NEAR(billions, formula / 1e9, 1e-4) << name;
  }
  EXPECT_NEAR(static_cast<double>(count_parameters(preset("GPT25B", 50304, 2048)).total), 29.3e9,
              0.05e9);
  EXPECT_NEAR(static_cast<double>(count_parameters(preset("GPT1T_1024L", 50304, 2048)).total),
              8.05e12, 0.01e12);
}

TEST(Plan, ParametersAreThoseOfTheModel) {
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{},
        {"--swiglu", "--normalization", "rmsnorm", "--disable-bias-linear",
         "--untie-embeddings-and-output-weights", "--use-rotary-position-embeddings",
         "--num-key-value-heads", "2"},
        {"--squared-relu", "--kv-channels", "24", "--no-position-embedding"}}) {
    std::vector<std::string> all = small_gpt(flags);
    all.insert(all.end(), {"--train-iters", "10"});
    const PretrainCase c(all);
    ASSERT_EQ(c.error, "");
    const Plan plan = make_plan(c.options, 301);
    EXPECT_EQ(plan.parameters.total, num_parameters(plan.rank.model));
    EXPECT_EQ(plan.padded_vocabulary, 384);
  }
}

TEST(Plan, PaddedVocabulary) {
  EXPECT_EQ(padded_vocabulary(50257, 128, 1), 50304);
  EXPECT_EQ(padded_vocabulary(50257, 128, 2), 50432);
  EXPECT_EQ(padded_vocabulary(50257, 128, 8), 51200);
  EXPECT_EQ(padded_vocabulary(128, 128, 1), 128);
  for (const auto& [ranks, padded] :
       {std::pair("1", 50304), std::pair("2", 50432), std::pair("4", 50688)}) {
    const PretrainCase c(small_gpt({"--train-iters", "1", "--tensor-model-parallel-size", ranks,
                                    "--ranks-as-threads", ranks}));
    ASSERT_EQ(c.error, "");
    EXPECT_EQ(make_plan(c.options, 50257).padded_vocabulary, padded) << ranks;
  }
}

// Figures of a log of Megatron: 146484375 samples, batches of 288, 40 evaluation batches.
TEST(Plan, SamplesAskedOfTheData) {
  const PretrainCase c(small_gpt(
      {"--global-batch-size", "288", "--train-samples", "146484375", "--eval-iters", "40"}));
  ASSERT_EQ(c.error, "");
  const Plan plan = make_plan(c.options, 50257);
  EXPECT_EQ(plan.train_iterations, 508626);
  EXPECT_EQ(plan.requested_samples, (std::array<std::int64_t, 3>{146484375, 5863680, 11520}));
  EXPECT_EQ(plan.num_micro_batches(0), 144);
  EXPECT_EQ(plan.num_evaluations, 508);
}

TEST(Plan, TokensEndTrainingAndDriveTheSchedule) {
  const PretrainCase c(small_gpt({"--global-batch-size", "4", "--train-samples", "1000",
                                  "--train-tokens", "12900", "--lr-decay-tokens", "9600",
                                  "--lr-warmup-tokens", "640", "--lr-decay-style", "cosine"}));
  ASSERT_EQ(c.error, "");
  const Plan plan = make_plan(c.options, 301);
  EXPECT_EQ(plan.train_iterations, 250);  // what Megatron counts to
  EXPECT_EQ(plan.last_iteration, 101);    // 128 tokens a step: the 101st passes 12900
  EXPECT_EQ(plan.train_tokens, 101 * 128);
  EXPECT_EQ(plan.schedule_units(1, 0, 4), 128);
  EXPECT_EQ(plan.schedule.warmup, 640);
  EXPECT_EQ(plan.schedule.decay, 9600);
  EXPECT_EQ(plan.requested_samples[0], 1000);
}

TEST(Plan, AWarmUpInSamplesRisesWithThemBeforeADecayInTokens) {
  const PretrainCase c(
      small_gpt({"--global-batch-size", "4", "--train-iters", "100", "--lr-decay-tokens", "9600",
                 "--lr-warmup-iters", "4", "--curriculum-learning", "--curriculum-min-length", "8",
                 "--curriculum-max-length", "32", "--curriculum-steps", "6",
                 "--curriculum-length-step", "8"}));
  ASSERT_EQ(c.error, "");
  const Plan plan = make_plan(c.options, 301);
  // Lengths 8, 16, 16, 24, 24, 32: four steps of four samples count 256 tokens.
  EXPECT_EQ(plan.schedule.warmup, 4 * (8 + 16 + 16 + 24));
  for (std::int64_t step = 1; step <= 4; ++step) {
    EXPECT_EQ(plan.schedule_units(step, 4 * (step - 1), 4), 64);
  }
  EXPECT_EQ(plan.schedule_units(5, 16, 4), 4 * 24);
  EXPECT_EQ(plan.schedule_units(6, 20, 4), 4 * 32);
  EXPECT_EQ(plan.train_tokens, 4 * (8 + 16 + 16 + 24 + 24 + 95 * 32));
}

TEST(Plan, LongSequencesInChunks) {
  const auto flags = [](std::vector<std::string> more) {
    more.insert(more.end(), {"--train-iters", "1", "--ds-sequence-parallel-fpdt"});
    return small_gpt(more);
  };
  const PretrainCase plain(flags({}));
  ASSERT_EQ(plain.error, "");
  EXPECT_EQ(make_plan(plain.options, 301).rank.sequence_chunk, 65536);
  EXPECT_FALSE(make_plan(plain.options, 301).rank.offload.any());
  const PretrainCase on_host(flags(
      {"--ds-sequence-parallel-fpdt-chunk-size", "8", "--ds-sequence-parallel-fpdt-offloading",
       "--checkpoint-in-cpu", "--ds-sequence-parallel-size", "2", "--ranks-as-threads", "2"}));
  ASSERT_EQ(on_host.error, "");
  const Plan plan = make_plan(on_host.options, 301);
  EXPECT_EQ(plan.rank.sequence_chunk, 8);
  EXPECT_TRUE(plan.rank.offload.keys && plan.rank.offload.activations);

  const std::pair<std::vector<std::string>, const char*> refused[] = {
      {{"--ds-sequence-parallel-fpdt-chunk-size", "9", "--ds-sequence-parallel-size", "2",
        "--ranks-as-threads", "2"},
       "--ds-sequence-parallel-size 2 must divide it"},
      {{"--context-parallel-size", "2", "--ranks-as-threads", "2"},
       "instead of --context-parallel"},
      {{"--tensor-model-parallel-size", "2", "--sequence-parallel", "--ranks-as-threads", "2"},
       "leave out --sequence-parallel"},
      {{"--num-experts", "4"}, "experts take all tokens"},
      {{"--bf16", "--fp8-format", "hybrid"}, "scales of --fp8-format"},
      {{"--model-family", "bert"}, "leave it out for --model-family bert"}};
  for (const auto& [more, message] : refused) {
    EXPECT_NE(PretrainCase(flags(more)).error.find(message), std::string::npos) << message;
  }
  // Without the first flag the others ask for nothing.
  const PretrainCase without(
      small_gpt({"--train-iters", "1", "--ds-sequence-parallel-fpdt-chunk-size", "8",
                 "--ds-sequence-parallel-fpdt-offloading"}));
  ASSERT_EQ(without.error, "");
  EXPECT_EQ(make_plan(without.options, 301).rank.sequence_chunk, 0);
  EXPECT_FALSE(make_plan(without.options, 301).rank.offload.any());
}

TEST(Plan, ScheduleInIterations) {
  const PretrainCase c(small_gpt({"--global-batch-size", "8", "--train-iters", "500",
                                  "--lr-decay-iters", "320", "--lr-warmup-fraction", ".01"}));
  ASSERT_EQ(c.error, "");
  const Plan plan = make_plan(c.options, 301);
  EXPECT_EQ(plan.schedule.decay, 2560);
  EXPECT_DOUBLE_EQ(plan.schedule.warmup, 25.6);
  EXPECT_EQ(plan.schedule.weight_decay_length, 4000);
}

TEST(Plan, ActivationFunctions) {
  const auto kind = [](const std::vector<std::string>& flags) {
    std::vector<std::string> all = small_gpt(flags);
    all.insert(all.end(), {"--train-iters", "1"});
    return make_plan(PretrainCase(all).options, 301).rank.model.mlp;
  };
  EXPECT_EQ(kind({}).activation(), Activation::gelu_tanh);
  EXPECT_EQ(kind({"--no-bias-gelu-fusion"}).activation(), Activation::gelu_erf);
  EXPECT_EQ(kind({"--disable-bias-linear"}).activation(), Activation::gelu_erf);
  EXPECT_EQ(kind({"--disable-bias-linear", "--openai-gelu"}).activation(), Activation::gelu_tanh);
  EXPECT_EQ(kind({"--swiglu"}).activation(), Activation::silu);
  EXPECT_EQ(kind({"--swiglu"}).ffn, 128);  // 64 * 8 / 3 = 170 in multiples of 64
}

}  // namespace
}  // namespace bloomery
