// Folders made by tools/golden/hf.py: read, written, read again, and broken in all ways.
#include "checkpoint/hf/hf_model.h"

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "build_config.h"
#include "checkpoint/model_source_case.h"
#include "harness/shared_data.h"
#include "tensor/safetensors.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;

class HfModels : public ::testing::Test {
 protected:
  // A copy of a golden folder that may be changed.
  fs::path copy(const std::string& name) const {
    fs::path to = fs::path(scratch.file("x", "")).parent_path() / name;
    fs::remove_all(to);
    fs::create_directories(to);
    for (const auto& entry : fs::directory_iterator(golden(name))) {
      fs::copy(entry.path(), to);
      fs::permissions(to / entry.path().filename(), fs::perms::owner_write, fs::perm_options::add);
    }
    return to;
  }
  static fs::path golden(const std::string& name) {
    return fs::path(std::getenv("BLOOMERY_ROOT")) / "tests/golden/hf" / name;
  }
  static void replace(const fs::path& file, const std::string& from, const std::string& to) {
    std::string text = read_file(file);
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    text.replace(at, from.size(), to);
    AtomicFile out(file);
    out.write(text);
    out.commit();
  }
  std::string complaint(const fs::path& folder) {
    try {
      read_hf(stream, folder);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
  void expect_complaint(const fs::path& folder, const std::string& part) {
    const std::string text = complaint(folder);
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
  void expect_equal(const HfModel& a, const HfModel& b) {
    ASSERT_EQ(a.tensors.size(), b.tensors.size());
    for (const auto& [name, tensor] : a.tensors) {
      const Tensor& other = b.tensors.at(name);
      ASSERT_EQ(tensor.dtype(), other.dtype()) << name;
      ASSERT_EQ(tensor.shape(), other.shape()) << name;
      EXPECT_EQ(std::memcmp(tensor.data(), other.data(), tensor.bytes()), 0) << name;
    }
    EXPECT_EQ(a.tokens, b.tokens);
    EXPECT_EQ(a.options.vocabulary.untied, b.options.vocabulary.untied);
    EXPECT_EQ(a.options.mlp.kind, b.options.mlp.kind);
    EXPECT_EQ(a.options.norm.epsilon, b.options.norm.epsilon);
  }

  TemporaryFolder scratch;
  Device device{DeviceOptions{.num_threads = 1}};
  Stream stream{device};
};

TEST_F(HfModels, EveryFormSurvivesExportBitForBit) {
  for (const char* name :
       {"safetensors", "safetensors_sharded", "bin", "bin_sharded", "bin_legacy", "base_model"}) {
    const HfModel model = read_hf(stream, golden(name));
    for (const std::size_t limit : {std::size_t{5'000'000'000}, std::size_t{4000}}) {
      const fs::path folder =
          fs::path(scratch.file("x", "")).parent_path() / concat(name, "-", limit);
      write_hf(stream, folder, model.options, model.tensors,
               {.tokens = model.tokens, .max_shard_bytes = limit});
      EXPECT_EQ(fs::exists(folder / "model.safetensors"), limit > 4000);
      expect_equal(model, read_hf(stream, folder));
      EXPECT_TRUE(fs::exists(folder / "generation_config.json"));
    }
  }
}

TEST_F(HfModels, DtypesAndOptionsAreThoseOfTheFolder) {
  const HfModel bf16 = read_hf(stream, golden("safetensors_sharded"));
  EXPECT_EQ(bf16.options.mlp.kind, MlpKind::gelu_erf);
  EXPECT_EQ(bf16.tensors.at("final_norm.gain").dtype(), DType::bf16);
  EXPECT_EQ(read_hf(stream, golden("bin_sharded")).tensors.at("final_norm.gain").dtype(),
            DType::fp16);
  EXPECT_EQ(read_hf(stream, golden("base_model")).tensors.at("final_norm.gain").dtype(),
            DType::fp64);
  const HfModel untied = read_hf(stream, golden("bin_legacy"));
  EXPECT_TRUE(untied.options.vocabulary.untied);
  EXPECT_TRUE(untied.tensors.contains("head.weight"));
  EXPECT_FALSE(read_hf(stream, golden("bin")).options.vocabulary.untied);
}

TEST_F(HfModels, ATiedOutputThatDiffersIsAWeightOfItsOwn) {
  const fs::path folder = copy("bin_legacy");
  replace(folder / "config.json", "\"tie_word_embeddings\": false",
          "\"tie_word_embeddings\": true");
  EXPECT_TRUE(read_hf(stream, folder).options.vocabulary.untied);
}

TEST_F(HfModels, MixedDtypesAreKept) {
  HfModel model = read_hf(stream, golden("safetensors"));
  Tensor& gain = model.tensors.at("final_norm.gain");
  gain = Tensor::zeros(stream, DType::bf16, gain.shape());
  const fs::path folder = fs::path(scratch.file("x", "")).parent_path() / "mixed";
  write_hf(stream, folder, model.options, model.tensors, {.tokens = model.tokens});
  expect_equal(model, read_hf(stream, folder));
  EXPECT_NE(read_file(folder / "config.json").find("float32"), std::string::npos);
}

TEST_F(HfModels, SaysWhatIsMissingOrWrong) {
  expect_complaint("/nowhere", "is no folder");
  fs::path folder = copy("safetensors");
  fs::remove(folder / "model.safetensors");
  expect_complaint(folder, "no weights");
  folder = copy("safetensors");
  fs::remove(folder / "config.json");
  expect_complaint(folder, "config.json");
  folder = copy("safetensors_sharded");
  fs::remove(folder / "model-00002-of-00003.safetensors");
  expect_complaint(folder, "model-00002-of-00003.safetensors is missing");
  folder = copy("safetensors_sharded");
  replace(folder / "model.safetensors.index.json", "model-00001-of-00003.safetensors",
          "../model-00001-of-00003.safetensors");
  expect_complaint(folder, "no file of the same folder");
  folder = copy("safetensors_sharded");
  replace(folder / "model.safetensors.index.json", "model-00001", "model-00002");
  expect_complaint(folder, "but is not there");
  folder = copy("bin_sharded");
  replace(folder / "pytorch_model.bin.index.json", "weight_map", "weight_mop");
  expect_complaint(folder, "weight_map");
}

TEST_F(HfModels, WeightsMustFitTheConfiguration) {
  fs::path folder = copy("safetensors");
  replace(folder / "config.json", "\"n_layer\": 2", "\"n_layer\": 3");
  expect_complaint(folder, "h.2.ln_1.weight is missing");
  replace(folder / "config.json", "\"n_layer\": 3", "\"n_layer\": 1");
  expect_complaint(folder, "h.1.attn.c_attn.bias is no tensor of this gpt2");
  replace(folder / "config.json", "\"n_layer\": 1", "\"n_layer\": 2000000000");
  expect_complaint(folder, "too few");
  folder = copy("safetensors");
  replace(folder / "config.json", "\"vocab_size\": 37", "\"vocab_size\": 38");
  expect_complaint(folder, "transformer.wte.weight is [37, 12], but config.json asks for [38, 12]");
  folder = copy("bin");
  replace(folder / "config.json", "\"tie_word_embeddings\": true",
          "\"tie_word_embeddings\": false");
  EXPECT_TRUE(read_hf(stream, folder).options.vocabulary.untied);
  folder = copy("safetensors");
  replace(folder / "config.json", "\"tie_word_embeddings\": true",
          "\"tie_word_embeddings\": false");
  expect_complaint(folder, "lm_head.weight is missing");
}

TEST_F(HfModels, ExportRefusesWhatTransformersWouldReadWrongly) {
  HfModel model = read_hf(stream, golden("safetensors"));
  const fs::path folder = copy("safetensors");
  EXPECT_THROW(write_hf(stream, folder, model.options, model.tensors, {.max_shard_bytes = 4000}),
               Error);
  write_hf(stream, folder, model.options, model.tensors);  // the same names are replaced
  ModelOptions rotary = model.options;
  rotary.positions.rotary = true;
  EXPECT_THROW(write_hf(stream, folder, rotary, model.tensors), Error);
  model.tensors.erase("final_norm.bias");
  EXPECT_THROW(write_hf(stream, folder, model.options, model.tensors), Error);
}

TEST_F(HfModels, TokenizerFilesAreCopied) {
  const HfModel model = read_hf(stream, golden("safetensors"));
  const std::string vocab = R"({"a": 0, "b": 1, "ab": 2, "<|endoftext|>": 3})";
  const TokenizerOptions options{.type = "GPT2BPETokenizer",
                                 .vocab_file = scratch.file("my-vocab.json", vocab),
                                 .merge_file = scratch.file("my-merges.txt", "a b\n")};
  HfExportOptions extra{.tokens = model.tokens, .tokenizer = find_hf_tokenizer(options)};
  const fs::path folder = fs::path(scratch.file("x", "")).parent_path() / "with_tokenizer";
  write_hf(stream, folder, model.options, model.tensors, extra);
  EXPECT_EQ(read_file(folder / "vocab.json"), vocab);
  EXPECT_EQ(read_file(folder / "merges.txt"), "a b\n");
  EXPECT_NE(read_file(folder / "tokenizer_config.json").find("<|endoftext|>"), std::string::npos);
  EXPECT_EQ(read_hf(stream, folder).tokens, (HfTokenIds{3, 3, std::nullopt}));
}

TEST_F(HfModels, ATokenizerJsonIsReadAsItIs) {
  const fs::path source = fs::path(scratch.file("x", "")).parent_path();
  HfTokenizer tokenizer;
  for (const char* name : {"tokenizer.json", "vocab.json", "merges.txt"}) {
    tokenizer.files.push_back({name, scratch.file(name, "{}")});
  }
  const auto class_written = [&](const std::string& folder) {
    fs::create_directory(source / folder);
    write_tokenizer_files(source / folder, tokenizer, 8);
    return nlohmann::json::parse(read_file(source / folder / "tokenizer_config.json"))
        .at("tokenizer_class");
  };
  // GPT-2's own class would divide texts its own way, whatever tokenizer.json says.
  EXPECT_EQ(class_written("whole"), "PreTrainedTokenizerFast");
  tokenizer.files.erase(tokenizer.files.begin());
  EXPECT_EQ(class_written("pairs"), "GPT2Tokenizer");
}

}  // namespace
}  // namespace bloomery
