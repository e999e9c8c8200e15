// Megatron's and DeepSpeed's checkpoints through the program: training goes on from them, and their
// converters run under their names.
#include "apps/convert/aliases.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "apps/pretrain/run_case.h"
#include "checkpoint/hf/hf_model.h"
#include "checkpoint/hf/weight_files.h"
#include "checkpoint/megatron/foreign.h"
#include "checkpoint/megatron/foreign_case.h"
#include "checkpoint/model_source.h"
#include "checkpoint/pickle/torch_value.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;

nlohmann::json foreign_expectations() {
  return nlohmann::json::parse(golden_file("foreign/expected.json"));
}

class Aliases : public ::testing::Test {
 protected:
  std::string at(const std::string& name) const { return (folder_.path() / name).string(); }
  std::string unpack(const std::string& name) const {
    return unpack_foreign(name, folder_.path()).string();
  }
  std::string corpus() const {
    for (const char* ending : {".bin", ".idx"}) {
      const std::string name = concat("tiny_text_document", ending);
      std::ofstream(at(name), std::ios::binary) << golden_file("foreign/" + name);
    }
    return at("tiny_text_document");
  }
  // The losses of two more steps, by the flags that the checkpoint was made with.
  std::vector<double> continued(const std::string& load, const std::string& more) const {
    const Outcome outcome = run_command(words(
        "pretrain_gpt --num-layers 2 --hidden-size 8 --num-attention-heads 4 --seq-length 16 "
        "--max-position-embeddings 16 --micro-batch-size 2 --global-batch-size 4 --lr 0.01 "
        "--min-lr 0.001 --lr-decay-style cosine --lr-decay-iters 20 --lr-warmup-iters 2 "
        "--weight-decay 0 --clip-grad 1.0 --attention-dropout 0 --hidden-dropout 0 "
        "--make-vocab-size-divisible-by 4 --tokenizer-type NullTokenizer --vocab-size 20 --split "
        "100,0,0 --train-iters 4 --eval-iters 0 --eval-interval 1000 --log-interval 1 "
        "--no-bias-gelu-fusion --seed 1234 --padded-vocab-in-softmax --data-path " +
        corpus() + " --load " + load + " " + more));
    EXPECT_EQ(outcome.code, 0) << outcome.errors;
    std::vector<double> found;
    for (const std::string& loss : losses(outcome.out)) {
      found.push_back(std::stod(loss));
    }
    return found;
  }
  void expect_continues(const std::string& name, const std::string& more, double tolerance,
                        std::size_t steps = 2) const {
    const auto expected = foreign_expectations()[name]["losses"].get<std::vector<double>>();
    const std::vector<double> found = continued(unpack(name), more);
    ASSERT_EQ(found.size(), expected.size()) << name;
    for (std::size_t i = 0; i < steps; ++i) {
      EXPECT_NEAR(found[i], expected[i], tolerance * expected[i]) << name;
    }
  }
  std::map<std::string, std::string> weights(const std::string& path) {
    const auto source = open_model(stream_, path, Log(0, 1, LogLevel::error));
    std::map<std::string, std::string> all;
    for (const auto& [name, entry] : source->weights()) {
      const Tensor tensor = source->read(name);
      all[name].assign(static_cast<const char*>(tensor.data()), tensor.bytes());
    }
    return all;
  }

  TemporaryFolder folder_;
  Device device_{{.num_threads = 1}};
  Stream stream_{device_};
};

TEST_F(Aliases, TrainingGoesOnAsItWouldHave) {
  expect_continues("mega_fp32_t1p1", "", 1e-6);
  expect_continues("mega_fp32_t1p1",
                   "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 "
                   "--ranks-as-threads 4",
                   1e-6);
  expect_continues("mega_bf16_t2p2", "--bf16", 1e-3);
  expect_continues("ds_bf16_t2p2z1", "--bf16 --tensor-model-parallel-size 2 --ranks-as-threads 2",
                   1e-3);
  expect_continues("ds_bf16_d2z2", "--bf16", 1e-3);
  // That form has no padding rows, which the flags count in the softmax: others take their place.
  expect_continues("ds_universal", "--bf16", 2e-2);
  expect_continues("ds_fp16_t1p2z1", "--fp16", 1e-3);
  expect_continues("ds_fp16_d2z3", "--fp16", 1e-3);
  expect_continues("mega_llama_t2p1",
                   "--bf16 --use-rotary-position-embeddings --swiglu --normalization rmsnorm "
                   "--disable-bias-linear --untie-embeddings-and-output-weights "
                   "--num-key-value-heads 2 --ffn-hidden-size 12 --no-position-embedding",
                   1e-3);
}

constexpr const char* kExperts =
    "--expert-interval 1 --moe-train-capacity-factor 4 --disable-moe-top2-2nd-expert-sampling ";

TEST_F(Aliases, TrainingOfExpertsGoesOnAsItWouldHave) {
  const std::string flags = kExperts;
  expect_continues("ds_moe_e2d2z1", flags + "--bf16 --num-experts 4 --topk 2", 1e-3);
  expect_continues("ds_moe_residual", flags + "--fp16 --num-experts 2 4 --mlp-type residual", 1e-3);
  const std::string small = flags + "--num-experts 2 --micro-batch-size 1 ";
  expect_continues("ds_moe_t2e2z1", small + "--fp16", 1e-3);
  expect_continues("ds_moe_t2e2et",
                   small +
                       "--fp16 --tensor-model-parallel-size 2 --moe-expert-parallel-size 2 "
                       "--ranks-as-threads 4",
                   1e-3);
  // Without ZeRO this DeepSpeed divides gradients by a loss scale that the loss was not multiplied
  // by: beside its moments, of 1/1024, ours are large, and only the loss before the next update is
  // the same.
  expect_continues("ds_moe_e2z0", flags + "--fp16 --num-experts 2", 1e-3, 1);
  expect_continues("ds_moe_p2e2z1",
                   small + "--bf16 --pipeline-model-parallel-size 2 --ranks-as-threads 2", 1e-3);
}

TEST_F(Aliases, WhatWeWriteGoesOnToo) {
  expect_command({"convert", "--input", unpack("mega_fp32_t1p1"), "--output", at("ds"), "--to",
                  "deepspeed", "--tensor", "2", "--pipeline", "2"});
  const auto expected =
      foreign_expectations()["mega_fp32_t1p1"]["losses"].get<std::vector<double>>();
  const std::vector<double> found = continued(at("ds"), "--load-tag global_step2");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_NEAR(found[1], expected[1], 1e-5);
}

TEST_F(Aliases, ExpertsThatWeWriteGoOnToo) {
  const std::string source = unpack("ds_moe_t2e2z1");
  expect_command({"convert", "--input", source, "--output", at("ds"), "--to", "deepspeed",
                  "--tensor", "2", "--pipeline", "2", "--expert", "2"});
  const std::string step = at("ds") + "/global_step2/";
  EXPECT_TRUE(std::filesystem::exists(step + "layer_0_expert_1_mp_rank_03_model_states.pt"));
  const auto expected =
      foreign_expectations()["ds_moe_t2e2z1"]["losses"].get<std::vector<double>>();
  const std::vector<double> found =
      continued(at("ds"), concat(kExperts, "--fp16 --num-experts 2 --micro-batch-size 1"));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_NEAR(found[1], expected[1], 1e-3 * expected[1]);
}

TEST_F(Aliases, WhatTheirFormsHaveNoPlaceForIsRefused) {
  const auto refused = [&](const std::string& name, const std::string& flags) {
    const Outcome outcome = run_command(words(
        concat("convert --input ", unpack(name), " --output ", at("refused"), " --to ", flags)));
    EXPECT_EQ(outcome.code, 2) << name << " " << flags;
    EXPECT_FALSE(std::filesystem::exists(at("refused")));
    return outcome.errors;
  };
  EXPECT_NE(refused("ds_moe_e2d2z1", "megatron").find("--to deepspeed"), std::string::npos);
  EXPECT_NE(refused("ds_moe_e2d2z1", "deepspeed --expert 3").find("--expert 3"), std::string::npos);
  EXPECT_NE(refused("ds_bf16_d2z2", "deepspeed --expert 2").find("--expert"), std::string::npos);
  EXPECT_NE(refused("mega_bert_t1p1", "deepspeed").find("--to megatron"), std::string::npos);
  EXPECT_NE(refused("mega_t5_t1p1", "megatron --pipeline 6").find("--pipeline 6"),
            std::string::npos);
}

TEST_F(Aliases, ConvertersUnderTheirNames) {
  const std::string source = unpack("ds_bf16_t2p2z1");
  const auto before = weights(source);
  const std::string in = "--input_folder", out = "--output_folder";
  expect_command({"tools/convert_checkpoint/deepspeed_to_megatron.py", in, source, out, at("mega"),
                  "--target_tp", "2"});
  EXPECT_TRUE(fs::exists(at("mega/iter_0000002/mp_rank_01/model_optim_rng.pt")));
  EXPECT_EQ(weights(at("mega")), before);
  expect_command({"deepspeed_to_megatron", in, source, out, at("release"), "--for_release"});
  EXPECT_EQ(read_file(at("release/latest_checkpointed_iteration.txt")), "release");
  EXPECT_EQ(weights(at("release")), before);
  expect_command({"checkpoint_util", "--model-type", "GPT", "--load-dir", at("mega"), "--save-dir",
                  at("cut"), "--target-tensor-parallel-size", "1",
                  "--target-pipeline-parallel-size", "2", "--max-queue-size", "10"});
  EXPECT_TRUE(fs::exists(at("cut/iter_0000002/mp_rank_00_001/model_optim_rng.pt")));
  EXPECT_EQ(weights(at("cut")), before);
  expect_command({"merge_mp_partitions", "--model-type", "GPT", "--tensor-model-parallel-size", "1",
                  "--num-layers", "2", "--load", at("cut"), "--save", at("merged")});
  EXPECT_EQ(weights(at("merged")), before);
  expect_command({"ds_to_universal", in, at("merged"), out, at("universal"), "--no_strict"});
  EXPECT_EQ(weights(at("universal")), before);
  expect_command({"checkpoint_util", "--model-type", "GPT", "--load-dir", at("cut"), "--save-dir",
                  at("kept"), "--target-tensor-parallel-size", "2"});
  EXPECT_TRUE(fs::exists(at("kept/iter_0000002/mp_rank_01_001/model_optim_rng.pt")));
  expect_command({"deepspeed_to_transformers", in, source, out, at("hf")});
  EXPECT_EQ(weights(at("hf")), before);
}

// Weights alone, in the files that transformers would look for.
TEST_F(Aliases, ExactWeightsInFilesOfAnySize) {
  const std::string source = unpack("ds_bf16_d2z2");
  expect_command({"zero_to_fp32", source, at("exact")});
  const WeightFiles whole(at("exact"));
  EXPECT_EQ(whole.source(), fs::path(at("exact/pytorch_model.bin")));
  const std::string folder = fs::path(source).parent_path().string();
  const auto same_in_shards = [&](const std::string& name, const Arguments& more) {
    Arguments command{"zero_to_fp32",     folder, at(name), "-t", "global_step2",
                      "--max_shard_size", "1KB"};
    command.insert(command.end(), more.begin(), more.end());
    expect_command(command);
    const WeightFiles shards(at(name));
    EXPECT_EQ(shards.entries().size(), whole.entries().size());
    for (const auto& [weight, entry] : whole.entries()) {
      const Tensor a = whole.read(stream_, weight), b = shards.read(stream_, weight);
      EXPECT_EQ(a.shape(), b.shape()) << weight;
      EXPECT_EQ(a.to_host<float>(stream_), b.to_host<float>(stream_)) << weight;
    }
    return shards.source().filename();
  };
  EXPECT_EQ(same_in_shards("bin", {}), "pytorch_model.bin.index.json");
  EXPECT_EQ(same_in_shards("safe", {"--safe_serialization"}), "model.safetensors.index.json");
  const std::string refusal =
      expect_command({"zero_to_fp32", source, at("no"), "--max_shard_size", "5 apples"}, 2);
  EXPECT_NE(refusal.find("5 apples"), std::string::npos) << refusal;
}

// In the lines of tools/convert_checkpoint/inspect_checkpoint.py.
TEST_F(Aliases, FilesAreShown) {
  const std::string file = unpack("mega_fp32_t1p1") + "/mp_rank_00/model_optim_rng.pt";
  const std::string shown = expect_command({"inspect_checkpoint", file});
  EXPECT_TRUE(shown.starts_with("loading checkpoint file: " + file + "\n")) << shown;
  for (const char* line :
       {"\n[tensor] model.language_model.embedding.word_embeddings.weight = torch.Size([24, 8])\n",
        "\n[other] iteration = 2\n", "\n[other] checkpoint_version = 3.0\n",
        "\n[other] args = Namespace(", "num_layers=2", "bf16=False"}) {
    EXPECT_NE(shown.find(line), shown.npos) << line << "\n" << shown;
  }
  EXPECT_EQ(expect_command({"checkpoint", "inspect", file}), shown);
  expect_command(
      {"convert", "--input", unpack("mega_llama_t2p1"), "--output", at("hf"), "--to", "hf"});
  const std::string tensors = expect_command({"checkpoint", "inspect", at("hf/model.safetensors")});
  EXPECT_NE(tensors.find("[tensor] model.embed_tokens.weight = torch.Size(["), tensors.npos)
      << tensors;
  EXPECT_NE(expect_command({"checkpoint", "inspect", at("hf")}).find("[tensor] "), tensors.npos);
  expect_command({"checkpoint", "inspect", at("absent.pt")}, 2);
  expect_command({"checkpoint", "inspect", corpus() + ".bin"}, 2);
}

TEST_F(Aliases, HuggingFaceToDeepSpeedAndBack) {
  const std::string source = unpack("mega_llama_t2p1");
  expect_command({"convert", "--input", source, "--output", at("hf"), "--to", "hf"});
  expect_command({"hf2megads_weight_converter", "--hf-ckpt-dir", at("hf"), "--load-mode", "auto",
                  "--save", at("ds"), "--tensor-model-parallel-size", "2",
                  "--pipeline-model-parallel-size", "2", "--bf16", "--num-layers", "2"});
  EXPECT_TRUE(fs::exists(at("ds/global_step0/layer_05-model_01-model_states.pt")));
  expect_command(
      {"hf2megads_weight_converter", "--to-hf-ckpt", "--load", at("ds"), "--save", at("back")});
  EXPECT_EQ(weights(at("back")), weights(at("hf")));
}

// Training with tensor and pipeline ranks and ZeRO, then a model for transformers.
TEST_F(Aliases, FromTrainingToTransformers) {
  const Outcome outcome = run_command(words(
      "pretrain_gpt --num-layers 2 --hidden-size 8 --num-attention-heads 4 --seq-length 16 "
      "--max-position-embeddings 16 --micro-batch-size 2 --global-batch-size 4 --lr 0.01 "
      "--make-vocab-size-divisible-by 4 --tokenizer-type NullTokenizer --vocab-size 20 --split "
      "100,0,0 --train-iters 2 --eval-iters 0 --bf16 --adam-beta2 0.95 --clip-grad 0.5 "
      "--tensor-model-parallel-size 2 --pipeline-model-parallel-size 2 --ranks-as-threads 8 "
      "--zero-stage 1 --data-path " +
      corpus() + " --save " + at("save")));
  ASSERT_EQ(outcome.code, 0) << outcome.errors;
  expect_command({"convert", "--input", at("save"), "--output", at("ds"), "--to", "deepspeed",
                  "--tensor", "2", "--pipeline", "2"});
  const std::string hint = expect_command({"deepspeed_to_transformers", "--input_folder",
                                           at("save/global_step2"), "--output_folder", at("none")},
                                          2);
  EXPECT_NE(hint.find("its run saved " + at("save/step-2")), std::string::npos) << hint;
  // What the optimizer goes on with, whatever form lies between.
  expect_command({"checkpoint_util", "--load-dir", at("ds"), "--save-dir", at("mega")});
  EXPECT_TRUE(fs::exists(at("mega/iter_0000002/mp_rank_01_001")));
  expect_command({"convert", "--input", at("mega"), "--output", at("again"), "--to", "deepspeed"});
  const TorchObject file(
      open_input_file(at("again/global_step2/bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt")),
      true);
  const TorchValue optimizer = TorchValue(file).at("optimizer_state_dict");
  EXPECT_EQ(optimizer.at("clip_grad").real(), 0.5);
  const TorchValue group =
      optimizer.at("base_optimizer_state").at("param_groups").elements().front();
  EXPECT_EQ(group.at("betas").elements()[1].real(), 0.95);
  for (const char* from : {"ds", "save"}) {
    const std::string to = concat("hf_", from);
    expect_command(
        {"deepspeed_to_transformers", "--input_folder", at(from), "--output_folder", at(to)});
    EXPECT_EQ(weights(at(to)), weights(at("save")));
  }
}

TEST_F(Aliases, Refusals) {
  const std::string source = unpack("mega_fp32_t1p1");
  const auto refused = [&](const std::string& tensor, const std::string& pipeline) {
    return expect_command({"convert", "--input", source, "--output", at("out"), "--to", "megatron",
                           "--tensor", tensor, "--pipeline", pipeline},
                          2);
  };
  EXPECT_NE(refused("3", "1").find("--tensor 3"), std::string::npos);
  EXPECT_NE(refused("1", "3").find("--pipeline 3"), std::string::npos);
  EXPECT_FALSE(fs::exists(at("out")));
}

}  // namespace
}  // namespace bloomery
