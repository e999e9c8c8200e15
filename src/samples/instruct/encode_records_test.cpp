// The cache of encoded records: when it is used, when another entry is made, and that what is
// damaged or made twice at once does no harm.
#include "samples/instruct/encode_records.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "base/file.h"
#include "base/temporary_folder.h"
#include "samples/index_files.h"
#include "tokenizer/load.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;

class EncodeRecords : public testing::Test {
 protected:
  void SetUp() override {
    options_.prompt_template = "plain";
    tokenizer_ = load_tokenizer({.type = "NullTokenizer", .vocab_size = 100});
    fs::create_directory(data());
    write(R"({"prompt": "1 2", "completion": " 3"})"
          "\n"
          R"({"prompt": "4", "completion": " 5 6"})");
  }

  fs::path data() const { return folder_.path() / "data"; }
  void write(const std::string& text) const { write_file(data() / "d.jsonl", text); }

  // The ids of all examples; what is said goes to said_.
  std::string encode(const std::string& cache = "") {
    testing::internal::CaptureStderr();
    std::string ids;
    try {
      const RecordTemplate how = choose_template(options_, "");
      const auto records = encoded_records({options_, how, *tokenizer_},
                                           {(data() / "d.jsonl").string()}, cache, Log());
      InstructExample example;
      for (std::int64_t i = 0; i < records->size(); ++i) {
        records->read(i, 100, example);
        for (const TokenId id : example.ids) ids += concat(id, " ");
        ids += "| ";
      }
    } catch (const Error& error) {
      ids = error.what();
    }
    said_ = testing::internal::GetCapturedStderr();
    return ids;
  }
  bool encoded_anew() const { return said_.find("encoding the tokens of") != said_.npos; }
  // Files of the cache whose names end so.
  std::vector<fs::path> entries(const std::string& suffix) const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(data())) {
      if (entry.path().filename().string().ends_with(suffix)) found.push_back(entry.path());
    }
    return found;
  }

  TemporaryFolder folder_;
  InstructOptions options_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::string said_;
};

constexpr const char* kIds = "1 2 3 | 4 5 6 | ";

TEST_F(EncodeRecords, AreReadFromTheCacheAsLongAsNothingChanges) {
  EXPECT_EQ(encode(), kIds);
  EXPECT_TRUE(encoded_anew()) << said_;
  EXPECT_EQ(encode(), kIds);
  EXPECT_EQ(said_, "");
  EXPECT_EQ(entries(".key").size(), 1U);
  fs::last_write_time(data() / "d.jsonl", fs::file_time_type::clock::now());
  EXPECT_EQ(encode(), kIds);
  EXPECT_EQ(said_, "") << "what the file holds counts";
}

TEST_F(EncodeRecords, OfOtherFilesTemplatesOptionsAndTokenizersAreAnotherEntry) {
  encode();
  write(R"({"prompt": "1 2", "completion": " 7"})");
  EXPECT_EQ(encode(), "1 2 7 | ");
  EXPECT_TRUE(encoded_anew());
  options_.prompt_template = folder_.path() / "t.jinja";
  write_file(options_.prompt_template, "{{ prompt }}");
  options_.loss_on = LossOn::all;
  EXPECT_EQ(encode(), "1 2 | ");
  EXPECT_TRUE(encoded_anew());
  write_file(options_.prompt_template, "{{ completion }}");
  EXPECT_EQ(encode(), "7 | ");
  options_.only = "prompt=2";
  EXPECT_EQ(encode(), "");
  options_.only = "";
  EXPECT_EQ(encode(), "7 | ");
  EXPECT_FALSE(encoded_anew()) << "the earlier entry is still there";
  tokenizer_ = load_tokenizer(
      {.path = std::string(std::getenv("BLOOMERY_ROOT")) + "/tests/golden/tokenizers/llama3"});
  EXPECT_NE(encode(), "7 | ");
  EXPECT_TRUE(encoded_anew());
  EXPECT_EQ(entries(".key").size(), 6U);
}

TEST_F(EncodeRecords, ATemplateWithTheDateIsOfADay) {
  options_.prompt_template = folder_.path() / "t.jinja";
  write_file(options_.prompt_template, "{{ prompt }}{# strftime_now #}");
  options_.loss_on = LossOn::all;
  encode();
  EXPECT_NE(read_file(entries(".key").at(0)).find("\nday 2"), std::string::npos);
}

TEST_F(EncodeRecords, ThatAreCutOrDamagedAreMadeAgain) {
  for (const char* suffix : {".ids", ".loss_mask", ".ends", ".json"}) {
    encode();
    const fs::path path = entries(suffix).at(0);
    const std::string whole = read_file(path);
    for (const bool cut : {true, false}) {
      std::string damaged = whole.substr(0, whole.size() - (cut ? 1 : 0));
      damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 1);
      write_file(path, damaged);
      EXPECT_EQ(encode(), kIds) << path;
      EXPECT_NE(said_.find("is built again because it is damaged"), std::string::npos)
          << path << said_;
      EXPECT_TRUE(encoded_anew());
      for (const fs::path& each : entries("")) {
        if (each.filename() != "d.jsonl") fs::remove(each);
      }
      encode();
    }
  }
}

TEST_F(EncodeRecords, OfProcessesThatStartTogetherTheFirstMakesThem) {
  std::string lines;
  for (int i = 0; i < 20000; ++i)
    lines += R"({"prompt": "1 2", "completion": " 3"})"
             "\n";
  write(lines);
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(fork());
    if (children.back() == 0) {
      const std::string ids = encode();
      _exit(ids.size() != 20000 * 8 ? 1 : encoded_anew() ? 3 : 2);
    }
  }
  int made = 0, read = 0;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFEXITED(status));
    made += WEXITSTATUS(status) == 3 ? 1 : 0;
    read += WEXITSTATUS(status) == 2 ? 1 : 0;
  }
  EXPECT_EQ(made, 1);
  EXPECT_EQ(read, 3);
}

TEST_F(EncodeRecords, NothingIsKeptOfBadRecords) {
  write("{\"prompt\": \"1\", \"completion\": \" 2\"}\n\n{\"prompt\": 1\n");
  EXPECT_NE(encode().find("d.jsonl, line 3: not valid JSON"), std::string::npos) << encode();
  EXPECT_TRUE(entries(".key").empty());
  EXPECT_TRUE(entries(".ids").empty());
}

TEST_F(EncodeRecords, AreKeptWhereTheUserSays) {
  const fs::path cache = folder_.path() / "cache";
  EXPECT_EQ(encode(cache), kIds);
  EXPECT_TRUE(entries(".ids").empty());
  EXPECT_FALSE(fs::is_empty(cache));
  EXPECT_EQ(encode(cache), kIds);
  EXPECT_FALSE(encoded_anew());
}

TEST_F(EncodeRecords, OfAPipeAreReadOnce) {
  const fs::path pipe = data() / "d.jsonl";
  fs::remove(pipe);
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  const pid_t child = fork();
  if (child == 0) {
    std::ofstream(pipe) << "\n[{\"prompt\": \"1\", \"completion\": \" 2\"}]";
    _exit(0);
  }
  EXPECT_EQ(encode(), "1 2 | ");
  waitpid(child, nullptr, 0);
  EXPECT_EQ(entries("").size(), 1U);
}

}  // namespace
}  // namespace bloomery
