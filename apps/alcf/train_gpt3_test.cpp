#include "apps/alcf/train_gpt3.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "apps/common/command_case.h"

namespace bloomery {
namespace {

std::string joined(const Arguments& words) {
  std::string text = " ";
  for (const std::string& word : words) {
    text += word + " ";
  }
  return text;
}

std::string flags(const Variables& variables, int world) {
  return joined(alcf_run(variables, world).flags);
}

bool has(const std::string& text, const std::string& part) {
  return text.find(" " + part + " ") != text.npos;
}

struct DegreeCase {
  Variables variables;
  int world, tensor, pipeline, sequence, batch;
};

TEST(AlcfTrainGpt3, DegreesAndBatchOfTheScript) {
  for (const DegreeCase& c : std::initializer_list<DegreeCase>{
           {{}, 4, 4, 1, 1, 1},
           {{{"MPSIZE", "2"}, {"GAS", "3"}}, 8, 2, 1, 1, 12},
           {{{"PPSIZE", "2"}, {"MICRO_BATCH", "4"}}, 8, 4, 2, 1, 4},
           {{{"SP_TYPE", "ds"}}, 8, 8, 1, 1, 1},
           {{{"SP_TYPE", "ds"}, {"MPSIZE", "1"}, {"MICRO_BATCH", "2"}}, 8, 1, 1, 8, 2},
           {{{"MPSIZE", "1"}, {"SPSIZE", "1"}}, 1, 1, 1, 1, 1}}) {
    const std::string text = flags(c.variables, c.world);
    EXPECT_TRUE(has(text, concat("--tensor-model-parallel-size ", c.tensor))) << text;
    EXPECT_TRUE(has(text, concat("--pipeline-model-parallel-size ", c.pipeline))) << text;
    EXPECT_TRUE(has(text, concat("--ds-sequence-parallel-size ", c.sequence))) << text;
    EXPECT_TRUE(has(text, concat("--global-batch-size ", c.batch))) << text;
  }
}

TEST(AlcfTrainGpt3, TheDocumentsCommand) {
  const AlcfRun run = alcf_run({{"MODEL_SIZE_KEY", "GPT25B"},
                                {"SEQ_LEN", "4096"},
                                {"USE_FLASH_ATTN_V2", "1"},
                                {"MICRO_BATCH", "1"},
                                {"GAS", "1"},
                                {"SP_TYPE", "megatron"},
                                {"ZERO_STAGE", "1"}},
                               4);
  const std::string text = joined(run.flags);
  for (const char* part :
       {"--num-layers 64", "--hidden-size 6144", "--num-attention-heads 64", "--seq-length 4096",
        "--use-flash-attn-v2", "--sequence-parallel", "--zero-stage 1", "--cpu-optimizer",
        "--no-pipeline-parallel", "--checkpoint-activations"}) {
    EXPECT_TRUE(has(text, part)) << part << " is not in" << text;
  }
  EXPECT_TRUE(run.notes.empty());
  const auto config = nlohmann::json::parse(run.deepspeed);
  EXPECT_EQ(config["zero_optimization"]["stage"], 1);
  EXPECT_EQ(config["fp16"]["initial_scale_power"], 12);
  EXPECT_FALSE(config.contains("gradient_clipping"));
}

TEST(AlcfTrainGpt3, OtherVariables) {
  const std::string text = flags({{"NLAYERS", "2"},
                                  {"HIDDEN", "64"},
                                  {"ATEN_HEADS", "4"},
                                  {"USE_ACTIVATION_CHECKPOINTING", "0"},
                                  {"USE_SEQUENCE_PARALLEL", "0"},
                                  {"USE_FLASH_ATTN1", "1"},
                                  {"ZERO_STAGE", "0"},
                                  {"DATA_PATH", "corpus"}},
                                 2);
  EXPECT_TRUE(has(text, "--num-layers 2") && has(text, "--hidden-size 64")) << text;
  EXPECT_TRUE(has(text, "--use-flash-attn-v1") && has(text, "--data-path corpus")) << text;
  for (const char* part : {"--checkpoint-activations", "--sequence-parallel", "--cpu-optimizer"}) {
    EXPECT_FALSE(has(text, part)) << part;
  }
  const auto stage3 = nlohmann::json::parse(alcf_run({{"ZERO_STAGE", "3"}}, 1).deepspeed);
  EXPECT_EQ(stage3["gradient_clipping"], 1.0);
  EXPECT_EQ(stage3["zero_optimization"]["offload_param"]["device"], "cpu");
}

TEST(AlcfTrainGpt3, WhatHasNoEffectIsNamed) {
  const AlcfRun run = alcf_run({{"GLOBAL_BATCH", "64"}, {"PPSIZE", "2"}, {"MPSIZE", "8"}}, 8);
  ASSERT_EQ(run.notes.size(), 2u);
  EXPECT_TRUE(run.notes[0].starts_with("MPSIZE has no effect")) << run.notes[0];
  EXPECT_TRUE(run.notes[1].starts_with("GLOBAL_BATCH is set and has no effect")) << run.notes[1];
}

TEST(AlcfTrainGpt3, MistakesAreErrors) {
  EXPECT_THROW(flags({{"SEQ_LEN", "4k"}}, 1), Error);
  EXPECT_THROW(flags({{"SP_TYPE", "ulysses"}}, 1), Error);
  EXPECT_THROW(flags({{"MODEL_SIZE_KEY", "GPT26B"}}, 1), Error);
}

TEST(AlcfTrainGpt3, ADryRunPlans) {
  for (const auto& [name, value] : std::initializer_list<std::pair<const char*, const char*>>{
           {"MODEL_SIZE_KEY", "GPT25B"}, {"SEQ_LEN", "4096"}, {"NGPU_PER_HOST", "4"}}) {
    setenv(name, value, 1);
  }
  const Outcome plan = run_command({"alcf", "train-gpt3", "--data-path", "none", "--dry-run"});
  for (const char* name : {"MODEL_SIZE_KEY", "SEQ_LEN", "NGPU_PER_HOST"}) {
    unsetenv(name);
  }
  EXPECT_EQ(plan.code, 0) << plan.errors;
  EXPECT_TRUE(plan.out.starts_with("plan:")) << plan.out;
  EXPECT_TRUE(plan.says("num-layers ........................... 64")) << plan.out;
}

}  // namespace
}  // namespace bloomery
