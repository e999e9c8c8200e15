#include "train/plan/read_pretrain.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "train/plan/dry_run.h"
#include "train/plan/options_case.h"

namespace bloomery {
namespace {

struct DeepspeedFile {
  std::filesystem::path path = std::filesystem::path(::testing::TempDir()) / "ds_config_case.json";
  explicit DeepspeedFile(const std::string& text) { std::ofstream(path) << text; }
  ~DeepspeedFile() { std::filesystem::remove(path); }
};

PretrainCase with_deepspeed(const std::string& json, std::vector<std::string> flags) {
  const DeepspeedFile file(json);
  flags.insert(flags.end(),
               {"--train-iters", "10", "--deepspeed", "--deepspeed_config", file.path.string()});
  return PretrainCase(small_gpt(flags));
}

TEST(ReadPretrain, LossScaleAndClippingComeFromDeepspeed) {
  const PretrainCase c = with_deepspeed(
      R"({"train_batch_size": 8, "train_micro_batch_size_per_gpu": 2, "gradient_clipping": 0.5,
          "fp16": {"enabled": true, "loss_scale": 0, "initial_scale_power": 11,
                   "loss_scale_window": 500, "hysteresis": 3, "min_loss_scale": 2},
          "optimizer": {"type": "Adam", "params": {"lr": 3}}, "scheduler": {"type": "WarmupLR"}})",
      {"--fp16", "--loss-scale", "12", "--clip-grad", "1.0"});
  ASSERT_EQ(c.error, "");
  const Plan plan = make_plan(c.options, 301);
  EXPECT_EQ(plan.rank.optimizer.clip, 0.5);
  EXPECT_TRUE(plan.rank.optimizer.loss_scale.dynamic);
  EXPECT_EQ(plan.rank.optimizer.loss_scale.initial, 2048);
  EXPECT_EQ(plan.rank.optimizer.loss_scale.window, 500);
  EXPECT_EQ(plan.rank.optimizer.loss_scale.hysteresis, 3);
  EXPECT_EQ(plan.rank.optimizer.loss_scale.minimum, 2);
  EXPECT_EQ(plan.batch.global(), 8);
  EXPECT_TRUE(c.has_note("overrules --loss-scale = 12"));
  EXPECT_TRUE(c.has_note("overrules --clip-grad = 1"));
  EXPECT_TRUE(c.has_note("optimizer in "));
  EXPECT_TRUE(c.has_note("scheduler in "));
}

TEST(ReadPretrain, CommunicationComesFromDeepspeedOrMegatronsFlags) {
  const PretrainCase c = with_deepspeed(
      R"({"zero_optimization": {"stage": 2, "reduce_bucket_size": 5e8, "overlap_comm": false,
          "allgather_bucket_size": 5e8, "contiguous_gradients": true, "reduce_scatter": true,
          "stage3_prefetch_bucket_size": 1e7, "sub_group_size": 1e9},
          "communication_data_type": "bf16", "bf16": {"enabled": true},
          "data_types": {"grad_accum_dtype": "bf16"}})",
      {});
  ASSERT_EQ(c.error, "");
  const ReplicaOptions replicas = make_plan(c.options, 301).rank.replicas;
  EXPECT_EQ(replicas.bucket_elements, 500'000'000);
  EXPECT_FALSE(replicas.overlap_reductions);
  EXPECT_TRUE(replicas.overlap_gathers);
  EXPECT_EQ(replicas.reduce_dtype, DType::bf16);
  EXPECT_EQ(replicas.grad_dtype, DType::bf16);
  EXPECT_TRUE(c.has_note("allgather_bucket_size"));
  EXPECT_TRUE(c.has_note("stage3_prefetch_bucket_size"));
  const PretrainCase flags(
      small_gpt({"--train-iters", "10", "--use-distributed-optimizer", "--overlap-grad-reduce",
                 "--no-overlap-param-gather", "--ddp-bucket-size", "1000"}));
  ASSERT_EQ(flags.error, "");
  EXPECT_EQ(flags.options.parallel.zero_stage, 1);
  EXPECT_TRUE(flags.options.parallel.replicas.overlap_reductions);
  EXPECT_FALSE(flags.options.parallel.replicas.overlap_gathers);
  EXPECT_EQ(flags.options.parallel.replicas.bucket_elements, 1000);
  EXPECT_EQ(flags.options.parallel.replicas.reduce_dtype, DType::fp32);
  const PretrainCase rounded(small_gpt({"--train-iters", "10", "--grad-reduce-in-bf16"}));
  EXPECT_EQ(rounded.options.parallel.replicas.reduce_dtype, DType::bf16);
  EXPECT_EQ(rounded.options.parallel.replicas.grad_dtype, DType::fp32);
  const PretrainCase narrow(small_gpt({"--train-iters", "10", "--grad-dtype", "bf16"}));
  EXPECT_NE(narrow.error.find("--grad-dtype bf16 (data_types.grad_accum_dtype) goes with --bf16"),
            narrow.error.npos)
      << narrow.error;
}

TEST(ReadPretrain, DeepspeedsRulesOfOverflow) {
  const PretrainCase c =
      with_deepspeed(R"({"fp16": {"enabled": true, "consecutive_hysteresis": true}})", {"--fp16"});
  ASSERT_EQ(c.error, "");
  EXPECT_TRUE(make_plan(c.options, 301).rank.optimizer.loss_scale.consecutive_hysteresis);
  EXPECT_TRUE(c.options.precision.stop_at_min_scale);
  const PretrainCase off =
      with_deepspeed(R"({"fp16": {"enabled": true}})", {"--fp16", "--no-stop-at-min-loss-scale"});
  ASSERT_EQ(off.error, "");
  EXPECT_FALSE(off.options.precision.stop_at_min_scale);
  EXPECT_FALSE(make_plan(off.options, 301).rank.optimizer.loss_scale.consecutive_hysteresis);
  const PretrainCase megatron(small_gpt({"--train-iters", "10", "--fp16"}));
  EXPECT_FALSE(megatron.options.precision.stop_at_min_scale);
}

TEST(ReadPretrain, WhatDeepspeedLeavesOutIsItsDefault) {
  const PretrainCase c = with_deepspeed(R"({"fp16": {"enabled": true}})",
                                        {"--fp16", "--loss-scale", "12", "--clip-grad", "1.0"});
  ASSERT_EQ(c.error, "");
  const Plan plan = make_plan(c.options, 301);
  EXPECT_EQ(plan.rank.optimizer.clip, 0);
  EXPECT_TRUE(plan.rank.optimizer.loss_scale.dynamic);
  EXPECT_EQ(plan.rank.optimizer.loss_scale.initial, 65536);
  EXPECT_TRUE(c.has_note("gradients are not clipped, and --clip-grad has no effect"));
  EXPECT_TRUE(c.has_note("the loss scale is dynamic, and --loss-scale has no effect"));
}

// As in Megatron-DeepSpeed, which tells DeepSpeed the batch size of its flags before every step.
TEST(ReadPretrain, TheBatchOfTheFlagsOverrulesTheJson) {
  const PretrainCase batch =
      with_deepspeed(R"({"train_batch_size": 8})", {"--global-batch-size", "16"});
  ASSERT_EQ(batch.error, "");
  EXPECT_EQ(make_plan(batch.options, 301).batch.global(), 16);
  EXPECT_TRUE(batch.has_note("--global-batch-size = 16 overrules train_batch_size in "));
  const PretrainCase steps =
      with_deepspeed(R"({"train_batch_size": 2, "gradient_accumulation_steps": 1})",
                     {"--global-batch-size", "16"});
  ASSERT_EQ(steps.error, "");
  EXPECT_EQ(make_plan(steps.options, 301).batch.global(), 16);
  EXPECT_TRUE(steps.has_note("--global-batch-size = 16 overrules gradient_accumulation_steps in "));
  const PretrainCase same =
      with_deepspeed(R"({"train_batch_size": 16, "gradient_accumulation_steps": 8})",
                     {"--global-batch-size", "16"});
  ASSERT_EQ(same.error, "");
  EXPECT_FALSE(same.has_note("overrules"));
}

// DeepSpeed converts the model to the type of its own configuration.
TEST(ReadPretrain, TheTypeOfTheJsonOverrulesTheFlag) {
  const PretrainCase bf16 =
      with_deepspeed(R"({"fp16": {"enabled": false}, "bf16": {"enabled": true}})", {"--fp16"});
  ASSERT_EQ(bf16.error, "");
  EXPECT_EQ(bf16.options.precision.dtype, DType::bf16);
  EXPECT_TRUE(bf16.has_note("bf16.enabled in "));
  EXPECT_TRUE(bf16.has_note(" = bf16 overrules --fp16 = fp16"));
  EXPECT_EQ(with_deepspeed(R"({"fp16": {"enabled": true}})", {"--bf16"}).options.precision.dtype,
            DType::fp16);
  // With neither it finds weights of another type than fp32, and ends.
  EXPECT_TRUE(with_deepspeed(R"({"fp16": {"enabled": false}})", {"--fp16"})
                  .fails_with("--fp16 and fp16.enabled in "));
  EXPECT_TRUE(with_deepspeed(R"({"fp16": {"enabled": true}, "bf16": {"enabled": true}})", {})
                  .fails_with("contradict each other"));
}

TEST(ReadPretrain, KeysWithoutAnOptionGiveANoteOrAnAlternative) {
  const PretrainCase harmless = with_deepspeed(
      R"({"zero_optimization": {"stage": 1, "mics_shard_size": 4, "load_from_fp32_weights": true,
          "zero_quantized_weights": false}, "dump_state": true, "nebula": {"enabled": true},
          "gradient_allreduce_op": "mean", "elasticity": {"enabled": false},
          "bf16": {"enabled": true, "bf16_optimizer_states": false}})",
      {"--bf16"});
  ASSERT_EQ(harmless.error, "");
  EXPECT_TRUE(harmless.has_note("zero_optimization.mics_shard_size in "));
  EXPECT_TRUE(harmless.has_note("dump_state in "));
  EXPECT_TRUE(harmless.has_note("nebula in "));
  EXPECT_FALSE(harmless.has_note("elasticity"));
  const PretrainCase refused = with_deepspeed(
      R"({"zero_optimization": {"zero_quantized_gradients": true},
          "autotuning": {"enabled": true}, "tensor_parallel": {"autotp_size": 4},
          "sparse_attention": {"mode": "fixed"}})",
      {});
  for (const char* alternative :
       {"communication_data_type bf16 halves", "--micro-batch-size auto",
        "use --tensor-model-parallel-size", "attention is dense; leave it out"}) {
    EXPECT_TRUE(refused.fails_with(alternative)) << refused.error;
  }
}

TEST(ReadPretrain, WeightsInFiles) {
  const PretrainCase c = with_deepspeed(
      R"({"zero_optimization": {"stage": 3,
          "offload_param": {"device": "nvme", "nvme_path": "/fast", "pin_memory": true},
          "offload_optimizer": {"device": "cpu"}}})",
      {});
  ASSERT_EQ(c.error, "");
  const OffloadOptions offload = offload_options(c.options.offload, {});
  EXPECT_EQ(offload.values_at(), Placement::file);
  EXPECT_EQ(offload.values_folder, "/fast");
  EXPECT_EQ(offload.state(), Placement::host);
  EXPECT_TRUE(with_deepspeed(
                  R"({"zero_optimization": {"stage": 3, "offload_param": {"device": "nvme"}}})", {})
                  .fails_with("--offload-folder (nvme_path)"));
}

TEST(ReadPretrain, MonitorsOfTheJsonAreOptions) {
  const PretrainCase c = with_deepspeed(
      R"({"csv_monitor": {"enabled": true, "output_path": "out", "job_name": "job"},
          "tensorboard": {"enabled": true, "output_path": "tb"}, "wandb": {"enabled": true},
          "wall_clock_breakdown": true, "steps_per_print": 5,
          "comms_logger": {"enabled": true, "verbose": false, "prof_all": true, "debug": false},
          "flops_profiler": {"enabled": true, "profile_step": 4, "module_depth": -1,
                             "top_modules": 3, "detailed": true, "output_file": null}})",
      {});
  ASSERT_EQ(c.error, "");
  const LoggingOptions& o = c.options.logging;
  EXPECT_TRUE(o.csv_monitor.enabled);
  EXPECT_EQ(o.csv_monitor.output, "out");
  EXPECT_EQ(o.csv_monitor.job, "job");
  EXPECT_EQ(o.tensorboard_monitor.job, "DeepSpeedJobName");
  EXPECT_EQ(o.timing_level, 2);
  EXPECT_EQ(o.profile, "pt");
  EXPECT_TRUE(o.flops_profiler);
  EXPECT_EQ(o.flops_step, 4);
  EXPECT_TRUE(c.has_note("`wandb sync` takes"));
  const PretrainCase own(
      small_gpt({"--train-iters", "10", "--comms-logger", "--profile", "pt-full"}));
  ASSERT_EQ(own.error, "");
  EXPECT_EQ(own.options.logging.profile, "pt-full");
  EXPECT_EQ(own.options.logging.timing_level, 0);
}

TEST(ReadPretrain, OtherContradictionsNameBoth) {
  EXPECT_TRUE(with_deepspeed(R"({"zero_optimization": {"stage": 2}})", {"--zero-stage", "1"})
                  .fails_with("--zero-stage = 1 and zero_optimization.stage in "));
  EXPECT_TRUE(with_deepspeed(R"({"train_micro_batch_size_per_gpu": 4})", {})
                  .fails_with("--micro-batch-size = 2 and train_micro_batch_size_per_gpu in "));
  EXPECT_TRUE(with_deepspeed(R"({"train_batch_size": 8, "gradient_accumulation_steps": 2})", {})
                  .fails_with("gradient accumulation 2 x micro-batch size 2 x 1 data-parallel "
                              "ranks is not the global batch size 8"));
  EXPECT_TRUE(with_deepspeed(R"({"zero_optimisation": {"stage": 2}})", {})
                  .fails_with("unknown entry zero_optimisation.stage"));
}

TEST(ReadPretrain, WithoutDeepspeedMegatronsDefaultsHold) {
  const PretrainCase c(small_gpt({"--fp16", "--train-iters", "10"}));
  ASSERT_EQ(c.error, "");
  const Plan plan = make_plan(c.options, 301);
  EXPECT_EQ(plan.rank.optimizer.clip, 1);
  EXPECT_EQ(plan.rank.optimizer.loss_scale.initial, 4294967296.0);
  EXPECT_EQ(
      make_plan(
          PretrainCase(small_gpt({"--fp16", "--train-iters", "10", "--loss-scale", "12"})).options,
          301)
          .rank.optimizer.loss_scale.initial,
      12);
}

TEST(ReadPretrain, FeaturesThatDoNotExistAreRefusedByName) {
  const PretrainCase c(
      small_gpt({"--train-iters", "10", "--num-experts-switch", "64", "--onnx-safe", "True"}));
  for (const char* part : {"--num-experts-switch 64 is refused", "--onnx-safe True is refused"}) {
    EXPECT_TRUE(c.fails_with(part)) << c.error;
  }
  EXPECT_EQ(
      PretrainCase(small_gpt({"--train-iters", "10", "--num-experts", "1",
                              "--pipeline-model-parallel-size", "1", "--tensor-model-parallel-size",
                              "1", "--mlp-type", "standard", "--moe-loss-coeff", "0.01"}))
          .error,
      "");
}

TEST(ReadPretrain, ExpertsAreDescribedAsInMegatron) {
  const auto read = [](std::vector<std::string> more) {
    more.insert(more.end(), {"--train-iters", "10"});
    return PretrainCase(small_gpt(more));
  };
  const PretrainCase c =
      read({"--num-experts", "8", "--expert-interval", "1", "--topk", "2", "--mlp-type", "residual",
            "--moe-loss-coeff", "0.01", "--disable-moe-token-dropping", "--create-moe-param-group",
            "--disable-moe-top2-2nd-expert-sampling", "--ranks-as-threads", "4",
            "--tensor-model-parallel-size", "2", "--moe-expert-parallel-size", "4"});
  ASSERT_EQ(c.error, "");
  const Plan plan = make_plan(c.options, 301);
  EXPECT_EQ(plan.rank.model.moe.num_experts, std::vector<std::int64_t>{8});
  EXPECT_EQ(plan.rank.model.moe.kind, MoeKind::residual);
  EXPECT_FALSE(plan.rank.model.moe.drop_tokens || plan.rank.model.moe.sample_second);
  EXPECT_EQ(plan.rank.layout.degrees.expert, 2);  // tensor-parallel ranks share experts anyway
  EXPECT_TRUE(read({"--num-experts", "4", "8", "16"}).fails_with("num-experts has 3 numbers"));
  EXPECT_TRUE(read({"--num-experts", "4", "--topk", "5"}).fails_with("topk 5 of 4 experts"));
  EXPECT_TRUE(read({"--num-experts", "4", "--moe-expert-parallel-size", "2"})
                  .fails_with("--moe-expert-parallel-size 2 does not divide"));
}

TEST(ReadPretrain, TheLossInFp16IsRefused) {
  const auto read = [](const char* flag) {
    return PretrainCase(small_gpt({"--train-iters", "10", "--fp16", flag}));
  };
  EXPECT_TRUE(read("--fp16-lm-cross-entropy").fails_with("the loss of fp16 logits is computed in"));
  const PretrainCase half = read("--embedding-weights-in-fp32");
  EXPECT_EQ(half.error, "");
  EXPECT_TRUE(half.has_note("embedding-weights-in-fp32")) << "it is so without the flag";
}

TEST(ReadPretrain, Fp8HasTheFlagsOfBothMegatrons) {
  const auto read = [](std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"--train-iters", "10"});
    return PretrainCase(small_gpt(flags));
  };
  EXPECT_FALSE(fp8_options(read({"--bf16"}).options.precision.fp8));
  const PretrainCase hybrid = read({"--bf16", "--fp8-hybrid"});
  EXPECT_EQ(hybrid.error, "");
  EXPECT_EQ(fp8_options(hybrid.options.precision.fp8).value().gradients, Fp8Format::e5m2);
  const PretrainCase all = read({"--bf16", "--fp8-format", "e4m3", "--fp8-recipe", "tensorwise",
                                 "--no-fp8-wgrad", "--fp8-margin", "2", "--fp8-interval", "3",
                                 "--fp8-amax-history-len", "64", "--fp8-amax-compute-algo", "max"});
  EXPECT_EQ(all.error, "");
  const Fp8Options fp8 = fp8_options(all.options.precision.fp8).value();
  EXPECT_EQ(fp8.gradients, Fp8Format::e4m3);
  EXPECT_EQ(fp8.recipe, Fp8Recipe::current);
  EXPECT_FALSE(fp8.weight_gradients);
  EXPECT_EQ(fp8.margin, 2);
  EXPECT_EQ(fp8.interval, 3);
  EXPECT_EQ(fp8.history, 64);
  EXPECT_EQ(fp8.amax, Fp8Amax::largest);
  EXPECT_TRUE(read({"--fp8-e4m3"}).fails_with("--fp8-format goes with --bf16"));
  EXPECT_TRUE(read({"--bf16", "--fp8-e4m3", "--seq-length", "15"}).fails_with("a multiple of 16"));
}

TEST(ReadPretrain, RulesAcrossOptions) {
  const auto fails = [](const std::vector<std::string>& flags, const std::string& part) {
    const PretrainCase c(small_gpt(flags));
    EXPECT_TRUE(c.fails_with(part)) << part << " | " << c.error;
  };
  fails({}, "--train-iters, --train-samples or --train-tokens");
  fails({"--train-iters", "1", "--train-samples", "1"}, "exclude each other");
  fails({"--train-iters", "9", "--rampup-batch-size", "2", "2", "8"}, "needs --train-samples");
  fails({"--train-iters", "9", "--lr-warmup-samples", "3"}, "not with samples");
  fails({"--train-samples", "9", "--lr-decay-iters", "3"}, "not with iterations");
  fails({"--train-iters", "9", "--lr-warmup-iters", "3", "--lr-warmup-fraction", "0.1"},
        "as a fraction");
  fails({"--train-iters", "9", "--global-batch-size", "3"}, "not a multiple of 2");
  fails({"--train-iters", "9", "--max-position-embeddings", "16"}, "is less than --seq-length 32");
  fails({"--train-iters", "9", "--extend"}, "--extend needs --load");
  fails({"--train-iters", "9", "--extend", "--load", "x", "--override-opt_param-scheduler"},
        "--extend chooses the schedule");
  fails({"--train-iters", "9", "--json"}, "--json is for --dry-run");
  fails({"--train-iters", "9", "--lr-warmup-iters", "9"}, "must be shorter than the decay");
  fails({"--train-iters", "9", "--swiglu", "--squared-relu"}, "contradict each other");
  fails({"--train-iters", "9", "--hiden-size", "3"}, "did you mean --hidden-size?");
  fails({"--train-iters", "9", "--zero-stage", "4"}, "--zero-stage");
  fails({"--train-iters", "9", "--deepspeed"}, "needs --deepspeed_config");
}

TEST(ReadPretrain, ModelSizes) {
  const std::vector<std::string> rest = {
      "--seq-length", "64", "--micro-batch-size", "1", "--data-path", "x",
      "--lr",         "1",  "--train-iters",      "5"};
  std::vector<std::string> named = rest;
  named.insert(named.end(), {"--model-size", "1.7b", "--num-layers", "2"});
  const PretrainCase c(named, {.model_size_key = "GPT13B", .processes = 1});
  ASSERT_EQ(c.error, "");
  EXPECT_EQ(c.options.model.num_layers, 2);
  EXPECT_EQ(c.options.model.hidden_size, 2304);
  EXPECT_TRUE(c.has_note("--num-layers 2 overrides the 24 of --model-size 1.7B"));
  const PretrainCase key(rest, {.model_size_key = "GPT13B", .processes = 1});
  EXPECT_EQ(key.options.model.hidden_size, 5120);
  EXPECT_TRUE(PretrainCase(rest, {.model_size_key = "GPT12B", .processes = 1})
                  .fails_with("there is no model size 'GPT12B'"));
}

TEST(ReadPretrain, MegatronLmsWords) {
  const PretrainCase c(
      small_gpt({"--position-embedding-type", "rope", "--normalization", "RMSNorm",
                 "--group-query-attention", "--num-query-groups", "2", "--train-iters", "2"}));
  ASSERT_EQ(c.error, "");
  EXPECT_TRUE(c.options.model.positions.rotary);
  EXPECT_EQ(c.options.model.norm.kind, NormKind::rms);
  EXPECT_EQ(c.options.model.attention.num_groups, 2);
  EXPECT_FALSE(PretrainCase(small_gpt({"--position-embedding-type", "learned_absolute"}))
                   .options.model.positions.rotary);
  EXPECT_TRUE(PretrainCase(small_gpt({"--position-embedding-type", "ropy"}))
                  .fails_with("--position-embedding-type"));
}

TEST(ReadPretrain, ProcessesAreRanks) {
  const std::vector<std::string> tensor =
      small_gpt({"--train-iters", "10", "--tensor-model-parallel-size", "2"});
  EXPECT_TRUE(PretrainCase(tensor, {.model_size_key = {}, .processes = 3})
                  .fails_with("3 cannot be divided into such groups"));
  EXPECT_EQ(PretrainCase(tensor, {.model_size_key = {}, .processes = 4}).error, "");
  EXPECT_TRUE(PretrainCase(small_gpt({"--train-iters", "10", "--ranks-as-threads", "2"}),
                           {.model_size_key = {}, .processes = 2})
                  .fails_with("2 processes were started together: leave out --ranks-as-threads"));
}

TEST(ReadPretrain, DryRunPrintsEverythingAndTouchesNothing) {
  const PretrainCase c(
      small_gpt({"--train-iters", "10", "--vocab-file", "no-vocab.json", "--merge-file",
                 "no-merges.txt", "--load", "no-folder", "--use-flash-attn-v2"}));
  ASSERT_EQ(c.error, "");
  std::ostringstream out;
  print_dry_run(c.table, c.options, c.notes, DeviceKind::cpu, out);
  for (const char* part :
       {"num-layers", "padded to 50,304", "global batch", "2 = 2 (micro) x 1", "activations",
        "there is no corpus corpus", "no-vocab.json does not exist", "no-folder does not exist",
        "50257 tokens is assumed", "--use-flash-attn-v2 is ignored", "tokenizer-type"}) {
    EXPECT_NE(out.str().find(part), std::string::npos) << part << "\n" << out.str();
  }
}

TEST(ReadPretrain, SaysWhatIsMissing) {
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{}, {"--micro-batch-size", "2"}, {"--seq-length", "8"}}) {
    const std::string error = PretrainCase(flags).error;
    EXPECT_NE(error.find("--num-layers"), std::string::npos) << error;
    EXPECT_NE(error.find("--train-iters"), std::string::npos) << error;
    EXPECT_EQ(error.find("nan"), std::string::npos) << error;
  }
}

TEST(ReadPretrain, RefusesCountsThatNoNumberHolds) {
  const auto error = [](const std::vector<std::string>& flags) {
    return PretrainCase(small_gpt(flags)).error;
  };
  EXPECT_EQ(error({"--train-iters", "1000000000000", "--eval-iters", "0"}), "");
  EXPECT_EQ(error({"--train-iters", "1000000000000000", "--eval-iters", "0"}),
            "the tokens to train on would be 6.4e+16, and at most 9e+15 can be counted");
  EXPECT_EQ(error({"--train-iters", "9", "--lr-decay-iters", "9000000000000000"}),
            "the tokens of the learning rate's decay would be 5.76e+17, and at most 9e+15 can be "
            "counted");
  EXPECT_EQ(error({"--train-samples", "1000000000", "--eval-interval", "1", "--eval-iters",
                   "1000000000"}),
            "the samples of all evaluations would be 1e+18, and at most 9e+15 can be counted");
}

}  // namespace
}  // namespace bloomery
