// GPT samples read from a corpus through the index cache.
#include "samples/gpt_dataset.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "base/error.h"
#include "base/temporary_folder.h"
#include "samples/datasets.h"

namespace bloomery {
namespace {

using Ids = std::vector<TokenId>;

TEST(GptIndexKey, HasMegatronsHash) {
  const GptIndexKey key{"data/my-gpt2_text_document", "train", 20, 3, 4, 1234, "969, 30, 1"};
  EXPECT_EQ(key.hash(), "563708ba0c183a9d34979acb61c46b4f");
}

class GptDatasetTest : public testing::Test {
 protected:
  // Document d of the eight has the tokens 100 * d, 100 * d + 1, ...
  GptDatasetTest() : prefix_((folder_.path() / "corpus").string()) {
    IndexedWriter writer(prefix_, TokenType::u16);
    for (const TokenId length : kLengths) {
      Ids tokens;
      for (TokenId i = 0; i < length; ++i) {
        tokens.push_back(static_cast<TokenId>(100 * writer.num_documents()) + i);
      }
      writer.add_sequence(tokens);
      writer.end_document();
    }
    writer.commit();
    options_.data_path = {prefix_};
    options_.split = "1,0,0";
    options_.seq_length = 4;
  }

  DatasetBuilder builder(LogLevel least = LogLevel::error) const {
    return DatasetBuilder(options_, gpt_samples(options_.seq_length, 1234), Log(0, 1, least));
  }
  std::unique_ptr<Dataset> build(std::int64_t num_samples = 7) const {
    return builder().build(Split::train, num_samples);
  }
  static std::vector<Ids> all(const Dataset& source) {
    HostBatch batch(DeviceKind::cpu, source.fields(), 1);
    std::vector<Ids> samples;
    for (std::int64_t k = 0; k < source.size(); ++k) {
      source.read(k, Sample(batch, 0));
      const std::span<const TokenId> tokens = batch.array<TokenId>("tokens");
      samples.emplace_back(tokens.begin(), tokens.end());
    }
    return samples;
  }
  // Without the lock file.
  std::vector<std::filesystem::path> cache_files() const {
    std::vector<std::filesystem::path> files;
    for (const std::string& name : visible_names(folder_.path() / "index-cache")) {
      files.push_back(folder_.path() / "index-cache" / name);
    }
    return files;
  }

  static constexpr TokenId kLengths[] = {3, 5, 2, 7, 4, 6, 1, 8};
  TemporaryFolder folder_;
  std::string prefix_;
  DataOptions options_;
};

TEST_F(GptDatasetTest, SamplesRunOnOverDocuments) {
  const std::vector<Ids> samples = all(*build());
  // documents 2 1 6 0 4 5 3 7; rows (0,0)(1,2)(3,0)(4,1)(5,1)(5,5)(6,3)(7,0); shuffled 5 0 3 4 2 6
  // 1 7
  const std::vector<Ids> expected = {{505, 300, 301, 302, 303}, {200, 201, 100, 101, 102},
                                     {401, 402, 403, 500, 501}, {501, 502, 503, 504, 505},
                                     {0, 1, 2, 400, 401},       {303, 304, 305, 306, 700},
                                     {102, 103, 104, 600, 0},   {700, 701, 702, 703, 704}};
  EXPECT_EQ(samples, expected);
}

TEST_F(GptDatasetTest, RefusesWhatIsPastTheEnd) {
  const auto source = build();
  HostBatch batch(DeviceKind::cpu, source->fields(), 1);
  EXPECT_THROW(source->read(source->size(), Sample(batch, 0)), Error);
  EXPECT_THROW(source->read(-1, Sample(batch, 0)), Error);
}

TEST_F(GptDatasetTest, LoadsTheCacheInsteadOfBuilding) {
  const std::vector<Ids> built = all(*build());
  const auto files = cache_files();
  ASSERT_EQ(files.size(), 5u);  // three arrays, description and key; no temporary files
  const auto written = std::filesystem::last_write_time(files[1]);
  EXPECT_EQ(all(*build()), built);
  EXPECT_EQ(std::filesystem::last_write_time(files[1]), written);
}

TEST_F(GptDatasetTest, UsesTheSecondPlaceOnlyWhenTheFirstHasNothing) {
  options_.data_cache_path = (folder_.path() / "second" / "place").string();
  const std::vector<Ids> built = all(*build());
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "index-cache"));
  EXPECT_TRUE(std::filesystem::exists(options_.data_cache_path));
  options_.data_cache_path.clear();
  build();
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "index-cache"));
  options_.data_cache_path = (folder_.path() / "third").string();
  EXPECT_EQ(all(*build()), built);
  EXPECT_FALSE(std::filesystem::exists(options_.data_cache_path));
}

TEST_F(GptDatasetTest, LeavesDamagedFilesAloneAndBuildsOthers) {
  const std::vector<Ids> built = all(*build());
  for (const std::filesystem::path& path : cache_files()) {
    if (path.extension() == ".dsc") {
      continue;  // nobody reads it
    }
    SCOPED_TRACE(path.string());
    const std::string before = read_file(path);
    std::filesystem::resize_file(path, before.size() - 1);
    EXPECT_EQ(all(*build()), built);
    EXPECT_EQ(read_file(path).size(), before.size() - 1);
    EXPECT_EQ(cache_files().size(), 10u);
    EXPECT_EQ(all(*build()), built);
    EXPECT_EQ(cache_files().size(), 10u);  // the second set is good
    std::ofstream(path) << before;
  }
}

TEST_F(GptDatasetTest, AnIndexOfAnotherCorpusOfTheSameSizeIsNotUsed) {
  build();
  const auto before = cache_files();
  IndexedWriter writer(prefix_, TokenType::u16);
  for (const TokenId length : {8, 1, 6, 4, 7, 2, 5, 3}) {  // as many documents and tokens
    writer.add_sequence(Ids(length, static_cast<TokenId>(writer.num_documents())));
    writer.end_document();
  }
  writer.commit();
  const std::vector<Ids> samples = all(*build());
  EXPECT_EQ(cache_files().size(), 2 * before.size());
  std::filesystem::remove_all(folder_.path() / "index-cache");
  EXPECT_EQ(all(*build()), samples);
}

TEST_F(GptDatasetTest, MegatronsFilesAreUsedIfTheyAreOfThisCorpus) {
  build();
  const std::vector<std::filesystem::path> files = cache_files();
  const std::filesystem::path key = files[1], documents = files[2];
  ASSERT_EQ(key.extension(), ".key");
  const auto written = std::filesystem::last_write_time(documents);
  std::filesystem::remove(key);  // Megatron writes none
  build();
  EXPECT_EQ(cache_files(), files);
  EXPECT_EQ(std::filesystem::last_write_time(documents), written);

  std::filesystem::remove(key);
  std::string other = read_file(documents);
  other.back() = 'x';
  std::ofstream(documents) << other;
  const std::vector<Ids> samples = all(*build());
  EXPECT_EQ(cache_files().size(), 4u + 5u);
  EXPECT_EQ(read_file(documents), other);
  std::filesystem::remove_all(folder_.path() / "index-cache");
  EXPECT_EQ(all(*build()), samples);
}

TEST_F(GptDatasetTest, DataThatCannotBeWrittenToShareTheUsersCache) {
  const std::vector<Ids> expected = all(*build());
  std::filesystem::remove_all(folder_.path() / "index-cache");
  std::ofstream(folder_.path() / "index-cache") << "no folder";
  const std::filesystem::path cache = folder_.path() / "home";
  const char* const before = std::getenv("XDG_CACHE_HOME");
  const std::string old = before == nullptr ? "" : before;
  setenv("XDG_CACHE_HOME", cache.c_str(), 1);
  EXPECT_EQ(all(*build()), expected);
  const auto files = [&] {
    return std::distance(std::filesystem::directory_iterator(cache / "bloomery" / "index"), {});
  };
  EXPECT_EQ(files(), 6);  // with the lock
  EXPECT_EQ(all(*build()), expected);
  EXPECT_EQ(files(), 6);
  setenv("XDG_CACHE_HOME", "/proc/none", 1);  // nothing can be written anywhere
  EXPECT_EQ(all(*build()), expected);
  old.empty() ? unsetenv("XDG_CACHE_HOME") : setenv("XDG_CACHE_HOME", old.c_str(), 1);
}

TEST_F(GptDatasetTest, FilesCutShortWhileInUseAreErrors) {
  const auto source = build(100000);
  for (const std::filesystem::path& path : cache_files()) {
    std::filesystem::resize_file(path, std::min<std::uintmax_t>(64, file_size(path)));
  }
  EXPECT_THROW(all(*source), Error);
}

TEST_F(GptDatasetTest, AnIndexCutShortWhileInUseIsAnError) {
  const auto source = build();
  std::filesystem::resize_file(prefix_ + ".idx", 64);
  EXPECT_THROW(all(*source), Error);
}

TEST_F(GptDatasetTest, DamagedValuesAreErrorsNotCrashes) {
  build();
  for (const std::filesystem::path& path : cache_files()) {
    if (path.extension() != ".npy") {
      continue;
    }
    const std::string before = read_file(path);
    std::string damaged = before;
    for (std::size_t i = 150; i < damaged.size(); ++i) {
      damaged[i] = '\x7f';
    }
    std::ofstream(path, std::ios::binary) << damaged;
    const auto source = build();
    const auto read_all = [&] { return all(*source).size(); };
    try {
      EXPECT_EQ(read_all(), 8u);
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("damaged"), std::string::npos) << error.what();
    }
    std::ofstream(path, std::ios::binary) << before;
  }
}

TEST_F(GptDatasetTest, ThreadsAndProcessesMayRace) {
  const std::vector<Ids> expected = all(*build(3000));
  std::filesystem::remove_all(folder_.path() / "index-cache");
  std::vector<pid_t> children;
  for (int i = 0; i < 4; ++i) {
    children.push_back(fork());
    if (children.back() == 0) {
      bool same = false;
      try {
        same = all(*build(3000)) == expected;
      } catch (...) {
      }
      _exit(same ? 0 : 1);
    }
  }
  std::vector<std::thread> threads;
  std::vector<int> same(4);
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] { same[t] = all(*build(3000)) == expected; });
  }
  for (std::thread& thread : threads) {
    thread.join();
  }
  EXPECT_EQ(same, std::vector<int>(4, 1));
  for (const pid_t child : children) {
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(cache_files().size(), 5u);
}

TEST_F(GptDatasetTest, SplitsAndSeparatePaths) {
  options_.split = "5,2,1";
  DatasetBuilder builder = this->builder();
  for (const Split split : kSplits) {
    const auto source = builder.build(split, 3);
    ASSERT_NE(source, nullptr);
    const SplitRange range = split_ranges(options_.split, 8)[static_cast<int>(split)];
    for (const Ids& sample : all(*source)) {
      for (const TokenId token : sample) {
        EXPECT_GE(token / 100, range.first);
        EXPECT_LT(token / 100, range.last);
      }
    }
  }
  options_.split = "1,0,0";
  EXPECT_EQ(this->builder().build(Split::test, 3), nullptr);

  DataOptions separate = options_;
  separate.data_path.clear();
  separate.valid_data_path = {"1", prefix_, "1", prefix_};
  DatasetBuilder separately(separate, gpt_samples(4, 1234), Log(0, 1, LogLevel::error));
  EXPECT_EQ(separately.build(Split::train, 3), nullptr);
  EXPECT_EQ(separately.build(Split::valid, 7)->size(), 8);  // 2 * ceil(7 / 2 * 1.005)
}

TEST_F(GptDatasetTest, SaysWhenASplitIsShorterThanASample) {
  options_.split = "5,2,1";  // documents of 21, 7 and 8 tokens
  EXPECT_TRUE(short_splits(options_).empty());
  options_.seq_length = 7;
  const std::vector<std::string> lines = short_splits(options_);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("the valid split of " + prefix_ + " has 7 tokens"), std::string::npos)
      << lines[0];
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "index-cache"));
  testing::internal::CaptureStderr();
  builder(LogLevel::warning).build(Split::valid, 3);
  EXPECT_NE(testing::internal::GetCapturedStderr().find(lines[0]), std::string::npos);
  options_.split = "1,0,0";
  options_.seq_length = 35;  // all 36 tokens are one sample
  EXPECT_TRUE(short_splits(options_).empty());
  options_.seq_length = 36;
  EXPECT_EQ(short_splits(options_).size(), 1u);
}

TEST_F(GptDatasetTest, ABlendNeedsDocumentsOfEveryMember) {
  const std::string tiny = (folder_.path() / "tiny").string();
  IndexedWriter writer(tiny, TokenType::u16);
  writer.add_sequence(Ids{1, 2, 3, 4, 5, 6, 7});
  writer.end_document();
  writer.commit();
  options_.data_path = {"1", prefix_, "1", tiny};
  options_.split = "6,2,0";
  DatasetBuilder builder = this->builder();
  EXPECT_NE(builder.build(Split::train, 5), nullptr);
  EXPECT_THROW(builder.build(Split::valid, 5), Error);
  EXPECT_EQ(builder.build(Split::test, 5), nullptr);
}

TEST_F(GptDatasetTest, UncountedTokensShiftTheSamples) {
  // Every document ends with a token that the .idx does not count.
  const auto bytes = read_file(prefix_ + ".bin");
  std::string longer;
  std::size_t at = 0;
  for (const TokenId length : kLengths) {
    longer += bytes.substr(at, 2 * length) + std::string("\x0f\x27", 2);  // 9999
    at += 2 * length;
  }
  std::ofstream(prefix_ + ".bin", std::ios::binary) << longer;
  const std::vector<Ids> samples = all(*build());
  // Document 4 is read four tokens too early, from within document 3.
  EXPECT_EQ(samples[4], (Ids{0, 1, 2, 304, 305}));
}

}  // namespace
}  // namespace bloomery
