#include "apps/convert/convert.h"

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "apps/common/command_case.h"
#include "base/file.h"
#include "base/temporary_folder.h"
#include "checkpoint/hf/hf_model.h"
#include "checkpoint/model_source.h"
#include "checkpoint/model_source_case.h"
#include "ops/arithmetic/arithmetic.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;

fs::path golden(const std::string& name) {
  return fs::path(std::getenv("BLOOMERY_ROOT")) / "tests/golden/hf" / name;
}

bool same_bytes(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

class ConvertTest : public ::testing::Test {
 protected:
  std::string run(const Arguments& arguments, int code = 0) {
    return expect_command(arguments, code);
  }
  std::string convert(const fs::path& input, const std::string& output, const std::string& to,
                      int code = 0) {
    return run({"convert", "--input", input.string(), "--output", path(output), "--to", to}, code);
  }
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  std::map<std::string, Tensor> tensors(const std::string& name) {
    const auto source = open_model(stream_, path(name), Log(0, 1, LogLevel::error));
    std::map<std::string, Tensor> all;
    for (const auto* part : {&source->weights(), &source->others()}) {
      for (const auto& [tensor, entry] : *part) {
        all.emplace(tensor, source->read(tensor));
      }
    }
    return all;
  }
  void expect_same(const std::map<std::string, Tensor>& a, const std::map<std::string, Tensor>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (const auto& [name, tensor] : a) {
      ASSERT_TRUE(b.contains(name)) << name;
      EXPECT_TRUE(same_bytes(tensor, b.at(name))) << name;
    }
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& item : fs::directory_iterator(folder_.path())) {
      names.push_back(item.path().filename().string());
    }
    return names;
  }

  TemporaryFolder folder_;
  Device device_{{.num_threads = 1}};
  Stream stream_{device_};
};

TEST_F(ConvertTest, EveryFormOfHuggingFaceAndBackChangesNoBit) {
  for (const char* name :
       {"safetensors", "safetensors_sharded", "bin", "bin_sharded", "bin_legacy", "base_model"}) {
    const std::string native = concat("native_", name), back = concat("back_", name);
    convert(golden(name), native, "native");
    EXPECT_NE(run({"checkpoint", "verify", path(native)}).find("good (step 0"), std::string::npos);
    convert(path(native), back, "hf");
    const HfModel before = read_hf(stream_, golden(name)), after = read_hf(stream_, path(back));
    expect_same(before.tensors, after.tensors);
    EXPECT_EQ(before.tokens, after.tokens);
    EXPECT_EQ(to_record(before.options), to_record(after.options));
    for (const char* file : {"config.json", "generation_config.json", "model.safetensors"}) {
      EXPECT_TRUE(fs::exists(fs::path(path(back)) / file)) << file;
    }
  }
}

TEST_F(ConvertTest, KeysThatWeDoNotKnowTravelWithTheModel) {
  using Json = nlohmann::json;
  const auto config_of = [&](const std::string& name) {
    return Json::parse(read_file(path(name + "/config.json")));
  };
  write_hf(stream_, path("first"), small_gpt(), random_weights(stream_, small_gpt(), DType::fp32));
  Json config = config_of("first");
  config["sep_token_id"] = 4;
  config["task_specific_params"] = {{"summary", {{"num_beams", 4}}}};
  config["transformers_version"] = "4.0.0";  // of the program that wrote it
  write_file(path("first/config.json"), config.dump());
  convert(path("first"), "second", "hf");
  convert(path("second"), "native", "native");
  convert(path("native"), "again", "native");
  convert(path("again"), "third", "hf");
  config.erase("transformers_version");
  EXPECT_EQ(config_of("second"), config);
  EXPECT_EQ(config_of("third"), config);
}

TEST_F(ConvertTest, TypesOfNumbersStay) {
  for (const DType dtype : {DType::fp32, DType::bf16, DType::fp16, DType::fp64}) {
    const auto weights = random_weights(stream_, small_gpt(), dtype);
    const std::string name = bloomery::name(dtype);
    write_hf(stream_, path(name), small_gpt(), weights);
    convert(path(name), name + "_native", "native");
    convert(path(name + "_native"), name + "_back", "hf");
    expect_same(weights, tensors(name + "_native"));
    expect_same(weights, read_hf(stream_, path(name + "_back")).tensors);
  }
}

// A run keeps fp32 weights, twice the bytes of what it computes with.
TEST_F(ConvertTest, RoundsToTheDtypeThatIsAskedFor) {
  const auto weights = random_weights(stream_, small_gpt(), DType::fp32);
  save_checkpoint(path("save"), 1, {small_gpt(), {}, DType::bf16}, weights);
  const auto with = [&](const char* dtype, const char* to, int code) {
    return run({"convert", "--input", path("save"), "--output", path(concat(to, dtype)), "--to", to,
                "--dtype", dtype},
               code);
  };
  for (const auto& [word, dtype] :
       {std::pair("bf16", DType::bf16), std::pair("float16", DType::fp16),
        std::pair("fp32", DType::fp32)}) {
    with(word, "hf", 0);
    const HfModel back = read_hf(stream_, path(concat("hf", word)));
    for (const auto& [name, tensor] : back.tensors) {
      ASSERT_EQ(tensor.dtype(), dtype) << name;
      Tensor expected = Tensor::empty(stream_, dtype, tensor.shape());
      launch(stream_, ScaleAdd{.x = weights.at(name), .y = expected});
      EXPECT_TRUE(same_bytes(tensor, expected)) << name;
    }
    const auto config = nlohmann::json::parse(read_file(path(concat("hf", word, "/config.json"))));
    EXPECT_EQ(config["torch_dtype"], dtype == DType::bf16   ? "bfloat16"
                                     : dtype == DType::fp16 ? "float16"
                                                            : "float32");
  }
  EXPECT_NE(with("bf16", "native", 2).find("--dtype"), std::string::npos);
  EXPECT_FALSE(fs::exists(path("nativebf16")));
  EXPECT_NE(run({"convert", "--input", path("save"), "--output", path("out"), "--to", "hf",
                 "--qkv-layout", "thirds"},
                2)
                .find("no checkpoint of Megatron or DeepSpeed"),
            std::string::npos);
}

TEST_F(ConvertTest, ACheckpointOfTrainingKeepsItsStepStateAndMoments) {
  const auto weights = random_weights(stream_, small_gpt(), DType::fp32);
  save_checkpoint(path("save"), 7, {small_gpt(), {}, DType::bf16}, weights);
  save_checkpoint(path("save"), 9, {small_gpt(), {}, DType::bf16}, weights);
  EXPECT_NE(convert(path("save/step-7"), "seven", "native").find("step-7"), std::string::npos);
  convert(path("save"), "newest", "native");
  EXPECT_TRUE(fs::exists(path("newest/step-9/manifest.json")));
  expect_same(tensors("save"), tensors("newest"));
  EXPECT_NE(run({"checkpoint", "diff", path("save"), path("newest")}).find("0 differ"),
            std::string::npos);
  const auto source = open_model(stream_, path("newest"), Log());
  EXPECT_EQ(source->record().dtype, DType::bf16);

  convert(path("save"), "exported", "hf");
  expect_same(weights, read_hf(stream_, path("exported")).tensors);  // no moments among them
}

TEST_F(ConvertTest, ShardsWhenAsked) {
  write_hf(stream_, path("whole"), small_gpt(), random_weights(stream_, small_gpt(), DType::fp32));
  run({"convert", "--input", path("whole"), "--output", path("cut"), "--to", "hf",
       "--max-shard-size", "9000"});
  EXPECT_TRUE(fs::exists(path("cut/model.safetensors.index.json")));
  EXPECT_FALSE(fs::exists(path("cut/model.safetensors")));
  expect_same(read_hf(stream_, path("whole")).tensors, read_hf(stream_, path("cut")).tensors);
}

TEST_F(ConvertTest, TokenizerFilesTravelWithTheModel) {
  const TokenizerOptions tokenizer = write_small_tokenizer(path("words"));
  save_checkpoint(path("save"), 1, {small_gpt(), tokenizer, DType::fp32},
                  random_weights(stream_, small_gpt(), DType::fp32));
  convert(path("save"), "hf", "hf");
  for (const char* file : {"vocab.json", "merges.txt", "tokenizer_config.json"}) {
    EXPECT_TRUE(fs::exists(fs::path(path("hf")) / file)) << file;
  }
  const auto config = nlohmann::json::parse(read_file(path("hf/config.json")));
  EXPECT_EQ(config["eos_token_id"], 60);
  EXPECT_EQ(config["vocab_size"], 61);

  convert(path("hf"), "native", "native");
  convert(path("save"), "copy", "native");
  fs::remove_all(path("words"));
  fs::remove_all(path("hf"));
  for (const char* name : {"native", "copy"}) {
    const auto source = open_model(stream_, path(name), Log());
    ASSERT_TRUE(source->record().tokenizer);
    EXPECT_EQ(load_tokenizer(*source->record().tokenizer)->vocab_size(), 61) << name;
  }
  EXPECT_EQ(open_model(stream_, path("copy"), Log())->record().tokenizer->type, tokenizer.type);
  // The tokenizer that the first checkpoint names is gone.
  EXPECT_NE(convert(path("save"), "lost", "hf", 2).find("--tokenizer"), std::string::npos);
  EXPECT_FALSE(fs::exists(path("lost")));
}

TEST_F(ConvertTest, RefusesWithoutLeavingAnything) {
  const fs::path good = golden("safetensors");
  folder_.file("file", "x");
  fs::create_directory(path("empty"));
  fs::create_directory(path("full"));
  folder_.file("full/note", "keep");
  ModelOptions rotary = small_gpt();
  rotary.positions.rotary = rotary.residual.after_norm = true;
  save_checkpoint(path("rotary"), 1, {rotary, {}, DType::fp32},
                  random_weights(stream_, rotary, DType::fp32));
  const auto before = files();

  EXPECT_NE(convert(path("absent"), "out", "hf", 2).find("does not exist"), std::string::npos);
  EXPECT_NE(convert(path("file"), "out", "hf", 2).find("is a file"), std::string::npos);
  EXPECT_NE(convert(path("empty"), "out", "hf", 2).find("holds no model"), std::string::npos);
  EXPECT_NE(convert(good, "full", "hf", 2).find("exists already"), std::string::npos);
  EXPECT_NE(convert(good, "file", "native", 2).find("exists already"), std::string::npos);
  EXPECT_NE(convert(good, "file/below", "native", 2).find("cannot create"), std::string::npos);
  EXPECT_NE(convert(good, "out", "onnx", 2).find("--to"), std::string::npos);
  EXPECT_NE(convert(path("rotary"), "out", "hf", 2).find("positions are not learned"),
            std::string::npos);
  run({"convert", "--input", path("empty"), "--to", "hf"}, 2);
  EXPECT_EQ(files(), before);
  EXPECT_EQ(read_file(path("full/note")), "keep");

  convert(good, "empty/", "hf");  // an empty folder is as good as none
  EXPECT_TRUE(fs::exists(path("empty/config.json")));
  fs::create_directory(path("place"));
  fs::create_directory_symlink(path("place"), path("link"));
  convert(good, "link", "hf");
  EXPECT_TRUE(fs::exists(path("place/config.json")));
}

TEST_F(ConvertTest, HelpSaysHow) {
  EXPECT_NE(run({"convert", "--help"}).find("--to"), std::string::npos);
}

}  // namespace
}  // namespace bloomery
