#include "generate/loaded_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "base/temporary_folder.h"
#include "checkpoint/model_source_case.h"
#include "comm/threads.h"
#include "tensor/safetensors.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;

fs::path golden(const std::string& name) {
  return fs::path(std::getenv("BLOOMERY_ROOT")) / "tests/golden/hf" / name;
}

const Log kQuiet(0, 1, LogLevel::error);

Batch token_batch(Stream& stream, const std::vector<std::int32_t>& tokens, std::int64_t sequences) {
  Batch batch;
  batch.num_sequences = sequences;
  batch.length = static_cast<std::int64_t>(tokens.size()) / sequences;
  std::vector<std::int32_t> positions, places;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    positions.push_back(static_cast<std::int32_t>(i) % static_cast<std::int32_t>(batch.length));
  }
  places.assign(positions.begin(), positions.begin() + batch.length);
  batch.tokens = Tensor::from_host(stream, tokens, {batch.num_tokens()});
  batch.positions = Tensor::from_host(stream, positions, {batch.num_tokens()});
  batch.places = Tensor::from_host(stream, places, {batch.length});
  batch.samples = Tensor::from_host(
      stream, std::vector<std::int64_t>(static_cast<std::size_t>(sequences)), {sequences});
  return batch;
}

std::vector<float> logits(LoadedModel& model, const std::vector<std::int32_t>& tokens,
                          std::int64_t sequences = 1) {
  const Batch batch = token_batch(model.stream(), tokens, sequences);
  Context context = model.context(batch);
  return model.model().forward(context).stream.data.to_host<float>(model.stream());
}

class LoadedModelTest : public ::testing::Test {
 protected:
  void save(std::int64_t step, std::uint64_t seed, DType dtype = DType::fp32) {
    save_checkpoint(folder_.path() / "save", step, {small_gpt(), std::nullopt, dtype},
                    random_weights(stream_, small_gpt(), DType::fp32, seed));
  }
  LoadOptions options(const std::string& name) const {
    return {.path = folder_.path() / name, .device = {.num_threads = 2}};
  }

  TemporaryFolder folder_;
  Device device_{{.num_threads = 1}};
  Stream stream_{device_};
};

TEST_F(LoadedModelTest, NewestCheckpointOfASaveFolder) {
  save(3, 1);
  save(20, 2);
  LoadedModel model(options("save"), kQuiet);
  EXPECT_EQ(model.folder().filename(), "step-20");
  EXPECT_EQ(model.dtype(), DType::fp32);
  const auto expected = random_weights(stream_, small_gpt(), DType::fp32, 2);
  for (const Parameter* parameter : model.model().parameters()) {
    EXPECT_FALSE(parameter->grad) << parameter->name;
    std::vector<float> actual = parameter->value.to_host<float>(model.stream());
    std::vector<float> wanted = expected.at(parameter->name).to_host<float>(stream_);
    wanted.resize(static_cast<std::size_t>(parameter->local_shape.numel()), 0);  // padding is zero
    EXPECT_EQ(actual, wanted) << parameter->name;
  }
}

TEST_F(LoadedModelTest, OneStepAndOthersAreNotTouched) {
  save(3, 1);
  save(20, 2);
  LoadedModel first(options("save/step-3"), kQuiet), second(options("save/step-20/"), kQuiet);
  EXPECT_EQ(first.folder().filename(), "step-3");
  EXPECT_NE(logits(first, {1, 2, 3}), logits(second, {1, 2, 3}));
}

TEST_F(LoadedModelTest, FallsBackToTheLastGoodOne) {
  save(3, 1);
  save(20, 2);
  for (const auto& item : fs::directory_iterator(folder_.path() / "save/step-20")) {
    if (item.path().extension() == ".safetensors") {
      fs::permissions(item.path(), fs::perms::owner_write, fs::perm_options::add);
      std::fstream file(item.path(), std::ios::in | std::ios::out | std::ios::binary);
      file.seekp(-1, std::ios::end);
      file.put('\x5a');
    }
  }
  EXPECT_EQ(LoadedModel(options("save"), kQuiet).folder().filename(), "step-3");
  EXPECT_THROW(LoadedModel(options("save/step-20"), kQuiet), Error);
}

TEST_F(LoadedModelTest, PaddingColumnsTakeNoPart) {
  save(1, 1);
  LoadedModel model(options("save"), kQuiet);
  const std::vector<float> all = logits(model, {5, 6, 7, 8});
  ASSERT_EQ(all.size(), 4u * 64);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_EQ(std::isinf(all[i]), i % 64 >= 61) << i;
  }
}

TEST_F(LoadedModelTest, OtherDTypesAreAskedFor) {
  save(1, 1, DType::bf16);
  LoadOptions asked = options("save");
  LoadedModel exact(asked, kQuiet);
  EXPECT_EQ(exact.dtype(), DType::fp32);  // on the CPU
  asked.dtype = DType::bf16;
  LoadedModel rounded(asked, kQuiet);
  EXPECT_EQ(rounded.dtype(), DType::bf16);
  const Parameter* a = exact.model().parameters().at(0);
  const Parameter* b = rounded.model().parameters().at(0);
  const auto numbers = a->value.to_host<float>(exact.stream());
  const auto halves = b->value.to_host<bfloat16>(rounded.stream());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    EXPECT_EQ(static_cast<float>(halves[i]), static_cast<float>(bfloat16(numbers[i])));
  }
}

TEST_F(LoadedModelTest, HuggingFaceFoldersGiveTransformersLogits) {
  for (const char* name : {"safetensors", "bin_sharded", "base_model"}) {
    LoadedModel model({.path = golden(name), .device = {.num_threads = 2}}, kQuiet);
    const SafetensorsFile file(golden(name) / "logits.safetensors");
    const auto tokens = file.read(stream_, "tokens").to_host<std::int32_t>(stream_);
    const auto expected = file.read(stream_, "logits").to_host<double>(stream_);
    const std::vector<float> actual = logits(model, tokens, file.entry("tokens").shape[0]);
    const auto real = static_cast<std::size_t>(model.options().vocabulary.size);
    const std::size_t columns = actual.size() / tokens.size();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_NEAR(actual[i / real * columns + i % real], expected[i], 1e-5) << name;
    }
    EXPECT_THROW(model.tokenizer(), Error);  // these folders have none
  }
}

TEST_F(LoadedModelTest, TokenizerOfTheRecordUnlessAnotherIsNamed) {
  ModelRecord record{small_gpt(), TokenizerOptions{.type = "NullTokenizer", .vocab_size = 60},
                     DType::fp32};
  save_checkpoint(folder_.path() / "save", 1, record,
                  random_weights(stream_, small_gpt(), DType::fp32));
  LoadOptions asked = options("save");
  LoadedModel recorded(asked, kQuiet);
  EXPECT_EQ(recorded.tokenizer().vocab_size(), 61);
  EXPECT_EQ(recorded.end_of_document(), 60);
  asked.tokenizer = {.type = "NullTokenizer", .vocab_size = 30};
  EXPECT_EQ(LoadedModel(asked, kQuiet).tokenizer().vocab_size(), 31);
}

TEST_F(LoadedModelTest, TextsBeginAsTheTokenizerHasIt) {
  ModelRecord record{small_gpt(), TokenizerOptions{.type = "NullTokenizer", .vocab_size = 60},
                     DType::fp32};
  save_checkpoint(folder_.path() / "save", 1, record,
                  random_weights(stream_, small_gpt(), DType::fp32));
  LoadOptions asked = options("save");
  EXPECT_FALSE(LoadedModel(asked, kQuiet).encode_options().add_special_tokens);
  const std::string root = std::getenv("BLOOMERY_ROOT");
  for (const char* kind : {"llama3", "llama2", "mistral"}) {
    asked.tokenizer = {.path = root + "/tests/golden/tokenizers/" + kind};
    LoadedModel model(asked, kQuiet);
    std::vector<TokenId> ids;
    model.tokenizer().make_encoder(model.encode_options())->encode("the boat", ids);
    EXPECT_EQ(ids.front(), model.tokenizer().special().bos) << kind;
  }
}

// Logits on one rank and on several, each with its part of the weights, and the largest difference.
void expect_same_divided(const LoadOptions& options, int ranks, double tolerance = 1e-5) {
  const std::vector<std::int32_t> tokens = {5, 6, 7, 8, 1, 2, 3, 4};
  LoadedModel whole(options, kQuiet);
  const std::vector<float> expected = logits(whole, tokens, 2);
  const std::size_t columns = expected.size() / tokens.size();
  const auto real = static_cast<std::size_t>(whole.options().vocabulary.size);
  run_ranks(ranks, [&](int, std::unique_ptr<Communicator> world) {
    LoadedModel model(options, kQuiet, std::move(world));
    EXPECT_TRUE(model.is_divided());
    EXPECT_EQ(model.ranks_on_device(), ranks);
    EXPECT_EQ(model.folder(), fs::absolute(whole.folder()));
    const Tensor found = model.logits(token_batch(model.stream(), tokens, 2));
    const std::vector<float> numbers = found.to_host<float>(model.stream());
    for (std::size_t row = 0; row < tokens.size(); ++row) {
      for (std::size_t i = 0; i < real; ++i) {
        const auto place = row * static_cast<std::size_t>(found.shape()[1]) + i;
        ASSERT_NEAR(numbers[place], expected[row * columns + i], tolerance) << ranks << " " << i;
      }
    }
  });
}

TEST_F(LoadedModelTest, RanksReadTheirParts) {
  save(3, 1);
  save(20, 2);
  expect_same_divided(options("save"), 2);
  expect_same_divided({.path = golden("safetensors"), .device = {.num_threads = 1}}, 3);
  expect_same_divided({.path = golden("bin_sharded"), .device = {.num_threads = 1}}, 3);
  for (const QuantizedFormat format : {QuantizedFormat::int8, QuantizedFormat::fp8}) {
    LoadOptions fewer_bits = options("save");
    fewer_bits.quantized = format;
    expect_same_divided(fewer_bits, 2);
  }
}

TEST_F(LoadedModelTest, WhatRanksCannotDivideIsSaidOnce) {
  save(1, 1);
  LoadOptions blocks = options("save");
  blocks.quantized = QuantizedFormat::nf4;
  const auto complaint = [&](const LoadOptions& asked, int ranks) -> std::string {
    try {
      run_ranks(ranks, [&](int, std::unique_ptr<Communicator> world) {
        LoadedModel(asked, kQuiet, std::move(world));
      });
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(complaint(options("save"), 4)
                .find("2 key/value heads cannot be divided among 4 tensor-parallel ranks"),
            std::string::npos);
  EXPECT_NE(complaint(blocks, 2).find("no whole blocks of 64"), std::string::npos);
  EXPECT_NE(complaint(options("absent"), 2).find("does not exist"), std::string::npos);
}

TEST_F(LoadedModelTest, SaysWhatIsWrong) {
  const auto complaint = [&](const std::string& name) -> std::string {
    try {
      LoadedModel(options(name), kQuiet);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(complaint("absent").find("does not exist"), std::string::npos);
  fs::create_directory(folder_.path() / "empty");
  EXPECT_NE(complaint("empty").find("holds no model"), std::string::npos);
  folder_.file("file", "text");
  EXPECT_NE(complaint("file").find("is a file"), std::string::npos);

  auto weights = random_weights(stream_, small_gpt(), DType::fp32);
  weights.erase("final_norm.gain");
  save_checkpoint(folder_.path() / "lacking", 1, {small_gpt(), {}, DType::fp32}, weights);
  EXPECT_NE(complaint("lacking").find("final_norm.gain"), std::string::npos);

  ModelOptions wider = small_gpt();
  wider.vocabulary.size = 62;
  weights = random_weights(stream_, small_gpt(), DType::fp32);
  save_checkpoint(folder_.path() / "other", 1, {wider, {}, DType::fp32}, weights);
  EXPECT_NE(complaint("other").find("embedding.tokens.weight"), std::string::npos);

  ModelOptions deep = small_gpt();
  deep.num_layers = 2'000'000'000;
  save_checkpoint(folder_.path() / "deep", 1, {deep, {}, DType::fp32}, weights);
  EXPECT_NE(complaint("deep").find("num-layers"), std::string::npos);
}

}  // namespace
}  // namespace bloomery
