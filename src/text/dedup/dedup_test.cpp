#include "text/dedup/dedup.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/temporary_folder.h"
#include "text/dedup/external_sort.h"
#include "text/dedup/removals.h"

namespace bloomery {
namespace {

TEST(ExternalSort, OnDiskAsInMemory) {
  const TemporaryFolder folder;
  std::mt19937_64 random(1);
  for (const std::size_t count : {0, 1, 64, 1000, 5000}) {
    ExternalSorter<std::uint64_t> sorter(folder.path(), 768);  // 64 at a time
    std::vector<std::uint64_t> expected, got;
    for (std::size_t i = 0; i < count; ++i) {
      expected.push_back(random() % 3000);
      sorter.add(expected.back());
    }
    EXPECT_EQ(sorter.num_runs() > 0, count > 64);
    std::ranges::sort(expected);
    sorter.for_each_sorted([&](std::uint64_t value) { got.push_back(value); });
    EXPECT_EQ(got, expected);
  }
  EXPECT_TRUE(visible_names(folder.path()).empty());
}

// The runs of a corpus of hundreds of millions of documents are more than the files that a process
// may have open.
TEST(ExternalSort, OpensFewFilesHoweverManyRuns) {
  const TemporaryFolder folder;
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  const auto open_files =
      static_cast<rlim_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
  const rlimit few{open_files + 140, before.rlim_max};
  setrlimit(RLIMIT_NOFILE, &few);
  std::mt19937_64 random(2);
  ExternalSorter<std::uint64_t> sorter(folder.path(), 768);  // 64 at a time
  std::vector<std::uint64_t> expected, got;
  for (int i = 0; i < 64 * 64 * 5 + 100; ++i) {
    expected.push_back(random());
    sorter.add(expected.back());
  }
  std::ranges::sort(expected);
  sorter.for_each_sorted([&](std::uint64_t value) { got.push_back(value); });
  setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(got == expected);
}

TEST(Removals, AreFoundFromAnyDocument) {
  const TemporaryFolder folder;
  RemovalWriter writer(folder.path() / "r");
  for (std::uint64_t i = 0; i < 5000; ++i) writer.add({3 * (i / 2), i % 2, 1});
  writer.commit();
  RemovalReader reader(folder.path() / "r");
  for (const std::uint64_t start : {0, 1, 3, 4000, 7497, 7498, 20000}) {
    reader.seek(start);
    for (std::uint64_t document = start; document < start + 20; ++document) {
      const std::vector<Removal>& found = reader.of(document);
      const bool any = document % 3 == 0 && document <= 3 * 2499;
      ASSERT_EQ(found.size(), any ? 2 : 0) << document;
      EXPECT_TRUE(!any || found[1].part == 1);
    }
  }
}

class DedupTest : public testing::Test {
 protected:
  DedupTest() {
    options_.output = folder_.path() / "out";
    options_.workers = 2;
  }
  void write(const std::string& name, const std::string& lines) {
    options_.input.push_back(folder_.file(name, lines));
  }
  DedupSummary run() {
    messages_.str("");
    return dedup(options_,
                 {.messages = messages_, .go_on = [this] { return !exists(interrupted_by_); }});
  }
  std::string output(const std::string& name) {
    return read_file(std::filesystem::path(options_.output) / name);
  }

  TemporaryFolder folder_;
  DedupOptions options_;
  std::ostringstream messages_;
  std::filesystem::path interrupted_by_ = "/nowhere";  // a run ends when this file is there
};

TEST_F(DedupTest, EqualDocumentsWithinAndAcrossFiles) {
  write("a.jsonl",
        "{\"id\": 1, \"text\": \"one\"}\nbad\n{\"text\": \"two\"}\n\n{\"text\":\"one\"}\n");
  write("b.jsonl", "{\"text\": \"two\", \"x\": [1]}\n{\"text\": \"thr\\u0065e\"}\n");
  options_.method = DedupMethod::exact;
  options_.keep_dropped = true;
  const DedupSummary summary = run();
  EXPECT_EQ(output("a.jsonl"), "{\"id\": 1, \"text\": \"one\"}\n{\"text\": \"two\"}\n");
  EXPECT_EQ(output("b.jsonl"), "{\"text\": \"thr\\u0065e\"}\n");
  EXPECT_EQ(output("a.dropped.jsonl"), "{\"text\":\"one\"}\n");
  EXPECT_EQ(output("b.dropped.jsonl"), "{\"text\": \"two\", \"x\": [1]}\n");
  EXPECT_EQ(summary.groups, 2);
  EXPECT_EQ(summary.report.bad_lines.count, 1);
  EXPECT_EQ(summary.report.documents, 5);
  EXPECT_EQ(summary.report.kept, 3);
  const TransformReport report = TransformReport::parse(output("report.json"));
  EXPECT_EQ(report.dropped.at("duplicate of a document of an earlier file").count, 1);
  EXPECT_EQ(visible_names(options_.output).size(), 5);  // nothing of the work remains
}

TEST_F(DedupTest, ParagraphsStayWhereTheyCameFirst) {
  write("a.txt", "x");
  options_.input.clear();
  write("a.jsonl",
        "{\"text\": \"head\\n\\nsame \\nown\", \"n\": 1}\n{\"text\": \"same\\nhead\\n\"}\n"
        "{\"text\": \"new\\nown\\nnew\", \"n\": 3}\n");
  options_.method = DedupMethod::paragraphs;
  const DedupSummary summary = run();
  EXPECT_EQ(output("a.jsonl"),
            "{\"text\": \"head\\n\\nsame \\nown\", \"n\": 1}\n{\"text\": \"new\", \"n\": 3}\n");
  EXPECT_EQ(summary.report.changed, 1);
  EXPECT_EQ(summary.report.dropped.at("every paragraph came before").count, 1);
  EXPECT_EQ(summary.report.parts.begin()->second, 4);
}

// Words of letters, for numbers count as equal.
std::string words(std::mt19937& random, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += 'w';
    for (const char digit : std::to_string(random() % 5000)) text += static_cast<char>(digit + 49);
    text += ' ';
  }
  return text;
}

// Documents, later near copies of them, spread over files and over runs of the sorter.
TEST_F(DedupTest, NearDuplicatesWhateverTheMemoryAndTheWorkers) {
  std::mt19937 random(5);
  std::vector<std::string> texts, expected(3);
  for (int i = 0; i < 300; ++i) texts.push_back(words(random, 200));
  for (int file = 0; file < 3; ++file) {
    std::string lines;
    for (int i = 0; i < 100; ++i) {
      const std::string line = "{\"text\": \"" + texts[100 * file + i] + "\"}\n";
      lines += line;
      expected[file] += line;
      std::string copy = texts[random() % (100 * file + i + 1)];
      copy.replace(copy.rfind('w'), 1, "changed");
      lines += "{\"text\": \"" + copy + "\"}\n";
    }
    write("f" + std::to_string(file) + ".jsonl", lines);
  }
  for (const std::int64_t memory : {std::int64_t{1} << 16, std::int64_t{1} << 28}) {
    for (const int workers : {1, 2}) {
      options_.memory_bytes = memory;
      options_.workers = workers;
      options_.overwrite = true;
      const DedupSummary summary = run();
      for (int file = 0; file < 3; ++file) {
        EXPECT_EQ(output("f" + std::to_string(file) + ".jsonl"), expected[file]);
      }
      EXPECT_EQ(summary.report.kept, 300);
    }
  }
}

TEST_F(DedupTest, GoesOnAfterAnInterruptionAndRefusesOtherOptions) {
  std::mt19937 random(5);
  std::string lines;
  for (int i = 0; i < 20000; ++i) lines += "{\"text\": \"" + words(random, 30) + "\"}\n";
  write("a.jsonl", lines + lines);
  const auto interrupted_by = [&](const std::filesystem::path& file) {
    interrupted_by_ = folder_.path() / file;
    const DedupSummary summary = run();
    interrupted_by_ = "/nowhere";
    return summary.interrupted;
  };
  EXPECT_TRUE(interrupted_by("a.jsonl"));  // at once
  EXPECT_TRUE(interrupted_by("out/dedup-work/a.jsonl.fingerprints.progress"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "out" / "a.jsonl"));
  options_.minhash.n_grams = 3;
  EXPECT_THROW(run(), Error);
  options_.minhash.n_grams = 5;
  EXPECT_EQ(run().report.kept, 20000);
  EXPECT_EQ(output("a.jsonl"), lines);
  EXPECT_TRUE(run().was_finished);
  EXPECT_EQ(visible_names(options_.output), (std::vector<std::string>{"a.jsonl", "report.json"}));
}

TEST_F(DedupTest, MistakesAreNamed) {
  options_.input = {"-"};
  EXPECT_THROW(run(), Error);
  options_.input.clear();
  write("a.jsonl", "{\"text\": \"a\"}\n");
  std::filesystem::create_directory(folder_.path() / "other");
  write("other/a.txt", "a\n");
  EXPECT_THROW(run(), Error);  // two outputs of one name
  options_.input.resize(1);
  options_.output = folder_.path();
  EXPECT_THROW(run(), Error);  // the input itself
}

}  // namespace
}  // namespace bloomery
