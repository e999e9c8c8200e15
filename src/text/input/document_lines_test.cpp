#include "text/input/document_lines.h"

#include <gtest/gtest.h>

#include "base/temporary_folder.h"

namespace bloomery {
namespace {

struct Seen {
  std::uint64_t offset;
  std::vector<std::string> texts;
  std::string fault;
};

std::vector<Seen> read(const std::string& file, const std::vector<std::string>& keys,
                       std::size_t max_line_bytes, LineCounts& counts) {
  LineReader reader({file}, {.chunk_bytes = 16, .max_line_bytes = max_line_bytes});
  DocumentLines lines(keys, max_line_bytes);
  std::vector<Seen> seen;
  for (LineChunk chunk; reader.next(chunk);) {
    lines.for_each(chunk, [&](const DocumentLine& line) {
      seen.push_back({line.offset, {line.texts.begin(), line.texts.end()}, line.fault});
      counts.add(chunk, line);
    });
  }
  return seen;
}

TEST(DocumentLines, KeysOfJsonInTheirOrder) {
  const TemporaryFolder folder;
  const std::string file =
      folder.file("a", "{\"b\": \"two\", \"a\": \"one\"}\n \n{\"a\": 1}\n{\"a\":\"\",\"b\":\"x\"}");
  LineCounts counts;
  const std::vector<Seen> seen = read(file, {"a", "b"}, 100, counts);
  ASSERT_EQ(seen.size(), 3u);
  EXPECT_EQ(seen[0].texts, (std::vector<std::string>{"one", "two"}));
  EXPECT_EQ(seen[0].offset, 0u);
  EXPECT_TRUE(seen[1].texts.empty());
  EXPECT_FALSE(seen[1].fault.empty());
  EXPECT_EQ(seen[2].texts, (std::vector<std::string>{"", "x"}));
  EXPECT_EQ(counts.lines, 2);
  ASSERT_EQ(counts.first_bad_lines.size(), 1u);
  EXPECT_EQ(counts.first_bad_lines[0].text({file}), file + ", line at byte 27: " + seen[1].fault);
}

TEST(DocumentLines, PlainTextAndWhatIsWrongWithIt) {
  const TemporaryFolder folder;
  const std::string file = folder.file("a", "one line\r\n\xff\n" + std::string(50, 'x') + "\nlast");
  LineCounts counts;
  const std::vector<Seen> seen = read(file, {"text"}, 20, counts);
  ASSERT_EQ(seen.size(), 4u);
  EXPECT_EQ(seen[0].texts, std::vector<std::string>{"one line"});
  EXPECT_EQ(seen[1].fault, "invalid UTF-8 (byte 0 of the line)");
  EXPECT_EQ(seen[2].fault, "a line of 50 bytes; --max-document-bytes is 20");
  EXPECT_EQ(seen[3].texts, std::vector<std::string>{"last"});
  EXPECT_EQ(seen[3].offset, 63u);
  EXPECT_EQ(counts.lines, 2);
  EXPECT_EQ(counts.bad_lines, 2);
}

TEST(LineCounts, KeepsTheFirstBadLines) {
  LineCounts counts;
  for (int i = 0; i < 25; ++i)
    counts.add({}, {.offset = static_cast<std::uint64_t>(i), .fault = "bad", .texts = {}});
  EXPECT_EQ(counts.bad_lines, 25);
  ASSERT_EQ(counts.first_bad_lines.size(), kBadLinesReported);
  EXPECT_EQ(counts.first_bad_lines.back().offset, 9u);
}

}  // namespace
}  // namespace bloomery
