// BERT, T5 and ICT samples against those of Megatron-DeepSpeed's own code
// (tools/golden/megatron_samples.py).
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <numeric>

#include "base/md5.h"
#include "base/temporary_folder.h"
#include "harness/shared_data.h"
#include "samples/ict_dataset.h"

namespace bloomery {
namespace {

using Ids = std::vector<TokenId>;

MaskingVocabulary vocabulary() {
  MaskingVocabulary made{.continues = {},
                         .cls = 1,
                         .sep = 2,
                         .mask = 3,
                         .pad = 0,
                         .bos = 4,
                         .eos = 5,
                         .sentinels = {}};
  for (TokenId id = 0; id < 300; ++id) {
    made.continues.push_back(id >= 30 && id % 3 == 0);
  }
  made.sentinels.resize(20);
  std::iota(made.sentinels.begin(), made.sentinels.end(), 10);
  return made;
}

void write_titles(const std::string& prefix) {
  IndexedWriter writer(prefix, TokenType::u16);
  for (int d = 0; d < 60; ++d) {
    Ids tokens(static_cast<std::size_t>(d % 9));
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] = static_cast<TokenId>(40 + (d * 13 + i) % 250);
    }
    writer.add_sequence(tokens);
    writer.end_document();
  }
  writer.commit();
}

void write_corpus(const std::string& prefix) {
  IndexedWriter writer(prefix, TokenType::u16);
  for (int d = 0; d < 60; ++d) {
    for (int s = 0; s < 1 + d % 6; ++s) {
      const bool is_long = s == 0 && (d == 7 || d == 13 || d == 24);
      Ids tokens(is_long ? 600 : 3 + (d * 7 + s * 5) % 20);
      for (std::size_t i = 0; i < tokens.size(); ++i) {
        tokens[i] = static_cast<TokenId>(30 + (d * 31 + s * 17 + i * 3) % 270);
      }
      writer.add_sequence(tokens);
    }
    writer.end_document();
  }
  writer.commit();
}

std::vector<std::int64_t> numbers(const HostBatch& sample, const char* name) {
  if (sample.find(name)->dtype == DType::fp32) {
    const auto values = sample.array<float>(name);
    return {values.begin(), values.end()};
  }
  const auto values = sample.array<std::int32_t>(name);
  return {values.begin(), values.end()};
}

// The arrays under Megatron's names, in the order of the golden file.
using Arrays = std::vector<std::pair<std::string, std::vector<std::int64_t>>>;

std::vector<std::int64_t> mask_of(const HostBatch& sample, const char* lengths) {
  std::vector<std::int64_t> mask(64, 0);
  std::fill_n(mask.begin(), numbers(sample, lengths)[0], 1);
  return mask;
}

Arrays ict_arrays(const HostBatch& sample, const BlockRow<std::int64_t>& block) {
  return {{"query_tokens", numbers(sample, "tokens")},
          {"query_pad_mask", mask_of(sample, "lengths")},
          {"context_tokens", numbers(sample, "encoder_tokens")},
          {"context_pad_mask", mask_of(sample, "encoder_lengths")},
          {"block_data", {block.begin(), block.end()}}};
}

Arrays arrays_of(const HostBatch& sample, const std::string& kind) {
  if (kind == "t5") {
    return {{"text_enc", numbers(sample, "encoder_tokens")},
            {"text_dec", numbers(sample, "tokens")},
            {"labels", numbers(sample, "labels")},
            {"loss_mask", numbers(sample, "loss_mask")}};
  }
  return {
      {"text", numbers(sample, "tokens")},          {"types", numbers(sample, "token_types")},
      {"labels", numbers(sample, "labels")},        {"loss_mask", numbers(sample, "loss_mask")},
      {"padding_mask", mask_of(sample, "lengths")}, {"is_random", numbers(sample, "is_random")}};
}

void expect_split(const Dataset& dataset, const std::string& kind, const nlohmann::json& expected) {
  ASSERT_EQ(dataset.size(), expected["size"].get<std::int64_t>());
  HostBatch sample(DeviceKind::cpu, dataset.fields(), 1);
  std::string text;
  for (std::int64_t k = 0; k < dataset.size(); ++k) {
    dataset.read(k, Sample(sample, 0));
    const auto* ict = dynamic_cast<const IctDataset*>(&dataset);
    for (const auto& [name, values] :
         ict != nullptr ? ict_arrays(sample, ict->block(k)) : arrays_of(sample, kind)) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        text += (i > 0 ? " " : "") + std::to_string(values[i]);
      }
      text += '\n';
      if (static_cast<std::size_t>(k) < expected["first"].size()) {
        const nlohmann::json& theirs = expected["first"][static_cast<std::size_t>(k)][name];
        EXPECT_EQ(values, theirs.is_array() ? theirs.get<std::vector<std::int64_t>>()
                                            : std::vector{theirs.get<std::int64_t>()})
            << "sample " << k << ", " << name;
      }
    }
  }
  EXPECT_EQ(md5_hex(text), expected["md5"]);
}

TEST(MegatronSamples, AreOurs) {
  const nlohmann::json golden = nlohmann::json::parse(golden_file("megatron_samples.json"));
  for (const nlohmann::json& expected : golden["cases"]) {
    const std::string kind = expected["kind"];
    SCOPED_TRACE(expected["files"].dump() + kind);
    const TemporaryFolder folder;
    DataOptions data;
    data.data_path = {(folder.path() / "corpus").string()};
    data.split = expected["split"];
    if (const std::int64_t epochs = expected["exact_epochs"]; epochs > 0) {
      data.train_data_exact_num_epochs = epochs;
    }
    write_corpus(data.data_path[0]);
    SentenceSampleOptions options;
    options.seq_length = 64;
    options.decoder_seq_length = 48;
    options.mask_prob = expected["masking"];
    options.short_seq_prob = expected["short"];
    options.seed = expected["seed"];
    options.one_segment = !expected["binary_head"].get<bool>();
    write_titles(data.data_path[0] + "_titles");
    options.blocks = {.titles = {data.data_path[0] + "_titles"},
                      .query_in_block_prob = expected["in_block"],
                      .one_sentence = expected["one_sentence"],
                      .titles_from_start = true};
    const auto make = kind == "bert" ? bert_samples(options, vocabulary())
                      : kind == "t5" ? t5_samples(options, vocabulary())
                                     : ict_samples(options, vocabulary(), data);
    DatasetBuilder builder(data, make, Log(0, 1, LogLevel::error));
    for (const Split split : kSplits) {
      const auto i = static_cast<std::size_t>(split);
      const auto dataset = builder.build(split, expected["requested"][i]);
      SCOPED_TRACE(name(split));
      ASSERT_EQ(dataset == nullptr, expected["splits"][i].is_null());
      if (dataset) {
        expect_split(*dataset, kind, expected["splits"][i]);
      }
    }
    for (const std::string file : expected["files"]) {
      EXPECT_TRUE(std::filesystem::exists(folder.path() / file)) << file;
    }
  }
}

}  // namespace
}  // namespace bloomery
