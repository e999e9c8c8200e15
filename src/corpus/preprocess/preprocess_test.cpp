#include "corpus/preprocess/preprocess.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/temporary_folder.h"
#include "config/option_table.h"
#include "corpus/preprocess/partitions.h"
#include "harness/golden_errors.h"
#include "harness/shared_data.h"
#include "tokenizer/bpe/gpt2.h"
#include "tokenizer/null_tokenizer.h"

namespace bloomery {
namespace {

// Each byte is its own id; spaces give nothing, as in tokenizers that split on them.
class ByteTokenizer : public Tokenizer {
 public:
  explicit ByteTokenizer(std::int64_t size = 300, bool with_eod = true) : size_(size) {
    if (with_eod) {
      special_.eod = 256;
    }
  }

  std::unique_ptr<Encoder> make_encoder(const EncodeOptions&) const override {
    class ByteEncoder : public Encoder {
      void encode(std::string_view text, std::vector<TokenId>& ids) override {
        for (const char byte : text) {
          if (byte != ' ') {
            ids.push_back(static_cast<unsigned char>(byte));
          }
        }
      }
    };
    return std::make_unique<ByteEncoder>();
  }
  std::string decode(std::span<const TokenId>) const override { return {}; }
  std::int64_t vocab_size() const override { return size_; }
  std::string piece(TokenId) const override { return {}; }
  std::optional<TokenId> find(std::string_view) const override { return {}; }
  std::string surface(TokenId) const override { return {}; }
  bool is_special(TokenId) const override { return false; }
  const SpecialTokens& special() const override { return special_; }

 private:
  std::int64_t size_;
  SpecialTokens special_;
};

class PreprocessTest : public ::testing::Test {
 protected:
  PreprocessTest() { options_.output_prefix = folder_ / "out"; }

  std::string write(const std::string& name, std::string_view bytes) const {
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }
  PreprocessSummary run(const Tokenizer& tokenizer = ByteTokenizer()) {
    messages_.str("");
    return preprocess(options_, {}, tokenizer,
                      {.messages = messages_, .go_on = [this] { return go_on_-- > 0; }});
  }
  // The sequences of a corpus; byte ids as text, the end of document as '$'. Documents end in '|'.
  std::string contents(const std::string& name) const {
    const IndexedCorpus corpus(folder_ / name);
    std::string text;
    for (std::int64_t document = 0; document < corpus.num_documents(); ++document) {
      for (std::int64_t i = corpus.first_sequence(document);
           i < corpus.first_sequence(document + 1); ++i) {
        std::vector<TokenId> ids(static_cast<std::size_t>(corpus.length(i)));
        corpus.read(i, 0, ids);
        for (const TokenId id : ids) {
          text += id == 256 ? '$' : static_cast<char>(id);
        }
        text += '/';
      }
      text += '|';
    }
    return text;
  }
  std::vector<std::string> names() const { return visible_names(folder_); }

  TemporaryFolder temporary_;
  const std::filesystem::path folder_ = temporary_.path();
  PreprocessOptions options_;
  std::ostringstream messages_;
  int go_on_ = 1 << 30;
};

constexpr const char* kMixedLines =
    "{\"text\":\"one\"}\nnot json\n\n{\"text\":\"\"}\n{\"txt\":\"x\"}\n{\"text\":\"\\ud800\"}\n"
    "{\"text\":\"caf\xC3\"}\n  \n{\"text\":\"  \"}\r\n{\"text\":\"two\"}";

TEST_F(PreprocessTest, BadBlankAndEmptyLines) {
  options_.input = {write("in.jsonl", kMixedLines)};
  options_.append_eod = true;
  const PreprocessSummary summary = run();
  EXPECT_EQ(contents("out_text_document"), "one$/|two$/|");
  EXPECT_EQ(summary.lines, 4);
  EXPECT_EQ(summary.bad_lines, 4);
  EXPECT_EQ(summary.empty_texts, 2);
  EXPECT_EQ(summary.outputs[0].documents, 2);
  EXPECT_EQ(summary.outputs[0].tokens, 8);
  const std::string messages = messages_.str();
  for (const char* part :
       {"in.jsonl, line at byte 15: invalid JSON", "line at byte 37: no key 'text'",
        "line at byte 49: invalid JSON: an invalid escape", "line at byte 67: invalid UTF-8"}) {
    EXPECT_NE(messages.find(part), messages.npos) << messages;
  }
}

TEST_F(PreprocessTest, TenBadLinesAreReported) {
  std::string lines;
  for (int i = 0; i < 25; ++i) {
    lines += "bad\n";
  }
  options_.input = {write("in.jsonl", lines), write("again.jsonl", lines + "{\"text\":\"a\"}\n")};
  EXPECT_EQ(run().bad_lines, 50);
  const std::string messages = messages_.str();
  std::size_t count = 0;
  for (std::size_t at = 0; (at = messages.find("bad line: ", at)) != messages.npos; ++at) {
    ++count;
  }
  EXPECT_EQ(count, 10);
}

TEST_F(PreprocessTest, StrictStopsAndLeavesNothing) {
  options_.input = {write("in.jsonl", kMixedLines)};
  options_.strict = true;
  EXPECT_THROW(run(), Error);
  EXPECT_EQ(names(), std::vector<std::string>{"in.jsonl"});
}

TEST_F(PreprocessTest, StoppedRunLeavesTheOldPair) {
  options_.input = {write("in.jsonl", "{\"text\":\"old\"}\n")};
  run();
  options_.input = {write("in.jsonl", "{\"text\":\"new\"}\n")};
  go_on_ = 0;
  EXPECT_TRUE(run().interrupted);
  EXPECT_EQ(contents("out_text_document"), "old/|");
  EXPECT_EQ(names().size(), 3);
}

TEST_F(PreprocessTest, LengthLimit) {
  const std::string longer = "{\"text\":\"" + std::string(200, 'x') + "\"}\n";
  options_.input = {write("in.jsonl", "{\"text\":\"a\"}\n" + longer + "{\"text\":\"b\"}\n")};
  options_.max_document_bytes = 100;
  EXPECT_EQ(run().bad_lines, 1);
  EXPECT_EQ(contents("out_text_document"), "a/|b/|");
  EXPECT_NE(messages_.str().find("line at byte 13: a line of 211 bytes"), std::string::npos)
      << messages_.str();
}

TEST_F(PreprocessTest, SeveralKeys) {
  options_.json_keys = {"title", "text"};
  options_.input = {write("in.jsonl",
                          "{\"text\":\"a\",\"title\":\"A\"}\n{\"text\":\"b\"}\n"
                          "{\"title\":\"\",\"text\":\"c\"}\n")};
  const PreprocessSummary summary = run();
  EXPECT_EQ(contents("out_title_document"), "A/|");
  EXPECT_EQ(contents("out_text_document"), "a/|c/|");
  EXPECT_EQ(summary.bad_lines, 1);
  EXPECT_EQ(summary.empty_texts, 1);
}

TEST_F(PreprocessTest, PlainText) {
  options_.input = {write("in.txt", "one line\r\n\nanother\n\xFF\nlast")};
  EXPECT_EQ(run().bad_lines, 1);
  EXPECT_EQ(contents("out_text_document"), "oneline/|another/|last/|");
  options_.json_keys = {"a", "b"};
  EXPECT_THROW(run(), Error);
}

TEST_F(PreprocessTest, Sentences) {
  options_.input = {write("in.jsonl", "{\"text\":\"One. Two!\\nThree?\"}\n{\"text\":\"Four\"}\n")};
  options_.split_sentences = options_.append_eod = true;
  run();
  EXPECT_EQ(contents("out_text_sentence"), "One./Two!/Three?$/|Four$/|");
  options_.keep_newlines = true;
  run();
  EXPECT_EQ(contents("out_text_sentence"), "One./Two!\n/Three?$/|Four$/|");
}

TEST_F(PreprocessTest, TypeFollowsVocabularyAndFormat) {
  options_.input = {write("in.jsonl", "{\"text\":\"a\"}\n")};
  EXPECT_EQ(run(ByteTokenizer(65499)).type, TokenType::u16);
  EXPECT_EQ(run(ByteTokenizer(65500)).type, TokenType::i32);
  options_.dataset_impl = CorpusFormat::lazy;
  EXPECT_EQ(run().type, TokenType::i32);
  EXPECT_EQ(IndexedCorpus(folder_ / "out_text_document").format(), CorpusFormat::cached);
}

TEST_F(PreprocessTest, Faults) {
  const std::string input = write("in.jsonl", "{\"text\":\"a\"}\n");
  options_.input = {folder_ / "none*"};
  EXPECT_THROW(run(), Error);
  options_.input = {input};
  options_.output_prefix = folder_ / "nowhere" / "out";
  EXPECT_THROW(run(), Error);
  options_.output_prefix = folder_ / "out";
  options_.append_eod = true;
  EXPECT_THROW(run(ByteTokenizer(300, false)), Error);
  options_.input = {input, write("cut.gz", "\x1F\x8B\x08")};
  EXPECT_THROW(run(), Error);
  EXPECT_EQ(names(), (std::vector<std::string>{"cut.gz", "in.jsonl"}));
}

TEST_F(PreprocessTest, ATextThatTheTokenizerRefusesIsNamed) {
  options_.input = {write("in.jsonl", "{\"text\":\"1 2\"}\n{\"text\":\"3 x\"}\n")};
  try {
    run(*make_null_tokenizer(10));
    FAIL();
  } catch (const Error& error) {
    const std::string message = error.what();
    EXPECT_TRUE(message.starts_with(options_.input[0] + ", line at byte 15: 'x'")) << message;
  }
  EXPECT_EQ(names(), std::vector<std::string>{"in.jsonl"});
}

// A limit on file sizes stands for a full disk: both fail the write.
TEST_F(PreprocessTest, FullDiskSaysWhatIsNeeded) {
  std::string lines;
  for (int i = 0; i < 3000; ++i) {
    lines += "{\"text\":\"" + std::string(1000, 'x') + "\"}\n";
  }
  options_.input = {write("in.jsonl", lines)};
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  const rlimit small{1 << 20, before.rlim_max};
  setrlimit(RLIMIT_FSIZE, &small);
  std::string message;
  try {
    run();
  } catch (const Error&) {
    message = "wrong kind";
  } catch (const std::runtime_error& error) {
    message = error.what();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  EXPECT_NE(message.find("no space left"), message.npos) << message;
  const std::string about = "the corpora of all input need about ";
  ASSERT_NE(message.find(about), message.npos) << message;
  const double needed = std::stod(message.substr(message.find(about) + about.size()));
  EXPECT_NEAR(needed, 3000 * (2000 + 20), 200000) << message;
  EXPECT_EQ(names(), std::vector<std::string>{"in.jsonl"});
}

// Many chunks and many files, packed and not: the order is the input's whatever the number of
// workers and of partitions.
TEST_F(PreprocessTest, OrderDoesNotDependOnWorkersOrPartitions) {
  std::mt19937 random(5);
  std::string expected;
  for (int file = 0; file < 5; ++file) {
    std::string lines;
    while (lines.size() < 3000000) {
      const std::string text(random() % 5000 + 1, static_cast<char>('a' + random() % 26));
      expected += text + "/|";
      lines += "{\"text\": \"" + text + "\"}\n";
    }
    options_.input.push_back(write("in" + std::to_string(file) + ".jsonl", lines));
  }
  for (const auto& [workers, partitions] : {std::pair{1, 1}, {2, 1}, {2, 2}, {1, 5}, {2, 64}}) {
    options_.workers = workers;
    options_.partitions = partitions;
    const PreprocessSummary summary = run();
    EXPECT_TRUE(contents("out_text_document") == expected) << workers << ", " << partitions;
    const IndexedCorpus corpus(folder_ / "out_text_document");
    EXPECT_EQ(summary.outputs[0].documents, corpus.num_documents());
    EXPECT_EQ(names().size(), 7);  // no part remains
    for (const std::string& file : options_.input) {
      EXPECT_NE(messages_.str().find("Opening " + file), std::string::npos);
    }
  }
}

TEST_F(PreprocessTest, APartitionThatFailsLeavesNothing) {
  options_.input = {write("a.jsonl", "{\"text\":\"a\"}\n"),
                    write("b.jsonl", "{\"text\":\"b\"}\nbad\n")};
  options_.partitions = 2;
  options_.strict = true;
  EXPECT_THROW(run(), Error);
  EXPECT_EQ(names(), (std::vector<std::string>{"a.jsonl", "b.jsonl"}));
}

TEST_F(PreprocessTest, RowsOfParquetFilesAsTheirLines) {
  const std::string golden = testing::repository_root() + "/tests/golden/parquet/";
  const std::vector<std::string> names = {"lz4_v1", "snappy_v2", "lz4_v2"};
  options_.append_eod = true;
  for (const std::string& name : names) options_.input.push_back(golden + name + ".jsonl");
  const PreprocessSummary lines = run();
  const std::string expected = contents("out_text_document");
  options_.input.clear();
  for (const std::string& name : names) options_.input.push_back(golden + name + ".parquet");
  for (const int partitions : {1, 2, 5, 100}) {
    options_.partitions = partitions;
    options_.overwrite = true;
    const PreprocessSummary rows = run();
    EXPECT_EQ(rows.lines, lines.lines);
    EXPECT_EQ(contents("out_text_document"), expected) << partitions;
  }
  options_.json_keys = {"txt"};
  EXPECT_THROW(run(), Error);
}

TEST(Partitions, BeginWithinParquetFiles) {
  const std::string golden = testing::repository_root() + "/tests/golden/parquet/";
  const std::string file = golden + "lz4_v1.parquet";
  using Starts = std::vector<PartitionStart>;
  EXPECT_EQ(partition_starts({file}, 1), (Starts{{0, 0}}));
  EXPECT_EQ(partition_starts({file}, 2), (Starts{{0, 0}, {0, 7}}));
  EXPECT_EQ(partition_starts({file, file}, 100), (Starts{{0, 0}, {0, 7}, {1, 0}, {1, 7}}));
}

TEST(Partitions, AreContiguousAndNotEmpty) {
  const TemporaryFolder folder;
  std::vector<std::string> files;
  for (const std::size_t size : {10, 1000, 10, 10, 900, 10}) {
    files.push_back(folder.file("f" + std::to_string(files.size()), std::string(size, 'x')));
  }
  using Starts = std::vector<PartitionStart>;
  EXPECT_EQ(partition_starts(files, 1), (Starts{{0, 0}}));
  EXPECT_EQ(partition_starts(files, 2), (Starts{{0, 0}, {2, 0}}));
  EXPECT_EQ(partition_starts(files, 100), (Starts{{0, 0}, {1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 0}}));
  EXPECT_EQ(partition_starts({"-"}, 3), (Starts{{0, 0}}));
}

// The corpus that Megatron made from these documents.
TEST_F(PreprocessTest, ReproducesMegatronsCorpus) {
  const auto folder = shared_data("megatron-indexed/openwebtext-1000");
  if (!folder) GTEST_SKIP() << kNoSharedData;
  const std::filesystem::path data = *folder;
  const auto tokenizer = load_gpt2(data / "gpt2-tiny-vocab.json", data / "gpt2-tiny-merges.txt");
  options_.input = {data / "openwebtext-1000.jsonl.xz"};
  options_.append_eod = true;
  const auto golden = data / "meg-gpt2-openwebtext_text_document";
  for (const int workers : {1, 2, 3}) {
    options_.workers = workers;
    run(*tokenizer);
    for (const auto& path : {bin_path, idx_path}) {
      EXPECT_TRUE(read_file(path(folder_ / "out_text_document")) == read_file(path(golden)))
          << path(golden) << ", " << workers << " workers";
    }
  }
}

TEST(PreprocessOptions, MegatronsFlagsAndOlderOnes) {
  PreprocessOptions options;
  OptionTable table;
  describe(table, options);
  table.read_flags({"--input",
                    "a",
                    "-",
                    "--json-key",
                    "content",
                    "--output-prefix",
                    "p",
                    "--dataset-impl",
                    "cached",
                    "--workers",
                    "8",
                    "--partitions",
                    "2",
                    "--log-interval",
                    "100",
                    "--lang",
                    "german",
                    "--seq-length",
                    "512",
                    "--trust-remote-code",
                    "--split-sentences",
                    "--keep-newlines",
                    "--append-eod"});
  table.finish(problems(options));
  EXPECT_EQ(options.input, (std::vector<std::string>{"a", "-"}));
  EXPECT_EQ(options.json_keys, std::vector<std::string>{"content"});
  EXPECT_EQ(options.dataset_impl, CorpusFormat::cached);
  EXPECT_EQ(corpus_prefix(options, "content"), "p_content_sentence");
  options.json_keys = {"a/b", "c", "c"};
  EXPECT_EQ(problems(options).size(), 2);
}

TEST(PreprocessOptions, SpecialTokensAsMegatron) {
  const PreprocessOptions options;
  EXPECT_FALSE(encode_options(options, "GPT2BPETokenizer").parse_special);
  EXPECT_FALSE(encode_options(options, "GPT2BPETokenizer").add_special_tokens);
  EXPECT_TRUE(encode_options(options, "HFTokenizer").add_special_tokens);
  EXPECT_TRUE(encode_options(options, "").parse_special);
  EXPECT_FALSE(encode_options(options, "").add_special_tokens);
}

}  // namespace
}  // namespace bloomery
