// Parquet files through the readers of lines.
#include "text/parquet/parquet_chunks.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "base/temporary_folder.h"
#include "harness/golden_errors.h"
#include "text/input/document_lines.h"
#include "text/input/file_kind.h"

namespace bloomery {
namespace {

std::string golden(const std::string& name) {
  return testing::repository_root() + "/tests/golden/parquet/" + name;
}

TEST(ParquetChunks, TakeTurnsWithTextFiles) {
  const TemporaryFolder folder;
  const std::string text = folder.file("a.jsonl", "{\"text\": \"one\"}\n");
  LineReader reader({golden("zstd_v1.parquet"), text, golden("gzip_v2.parquet")},
                    {.chunk_bytes = 1500});
  LineChunk chunk;
  std::string all;
  std::uint64_t end = 0, rows = 0;
  while (reader.next(chunk)) {
    const bool is_row = chunk.format == LineFormat::parquet;
    EXPECT_EQ(is_row, chunk.file != 1);
    EXPECT_EQ(chunk.offset, chunk.first_of_file ? 0 : end);
    end = chunk.end;
    if (is_row) rows += chunk.end - chunk.offset;
    all += chunk.bytes();
  }
  EXPECT_EQ(rows, 24u);
  EXPECT_EQ(all, read_file(golden("zstd_v1.jsonl")) + read_file(text) +
                     read_file(golden("gzip_v2.jsonl")));
  EXPECT_EQ(chunk.input_position, read_file(golden("zstd_v1.parquet")).size() +
                                      read_file(text).size() +
                                      read_file(golden("gzip_v2.parquet")).size());
}

TEST(ParquetChunks, BeginAndEndAtRows) {
  const std::string path = golden("snappy_v2.parquet");
  const std::string all = read_file(golden("snappy_v2.jsonl"));
  std::string joined;
  for (std::uint64_t begin = 0; begin < 12; begin += 4) {
    LineReader reader({path}, {.begin = begin, .end_row = begin + 4, .number_lines = true});
    LineChunk chunk;
    ASSERT_TRUE(reader.next(chunk));
    EXPECT_EQ(chunk.offset, begin);
    EXPECT_EQ(chunk.first_line, begin);
    joined += chunk.bytes();
    EXPECT_FALSE(reader.next(chunk));
  }
  EXPECT_EQ(joined, all);
}

TEST(ParquetChunks, DocumentsAreNamedByRow) {
  const std::string path = golden("lz4_v1.parquet");
  LineReader reader({path}, {.max_line_bytes = 400, .columns = {"messages", "text"}});
  DocumentLines lines({"text"}, 400);
  LineChunk chunk;
  std::uint64_t row = 0;
  LineCounts counts;
  while (reader.next(chunk)) {
    lines.for_each(chunk, [&](const DocumentLine& line) {
      EXPECT_TRUE(line.is_row);
      EXPECT_EQ(line.offset, row++);
      counts.add(chunk, line);
      EXPECT_TRUE(!line.fault.empty() || line.texts[0].starts_with("text "));
    });
  }
  EXPECT_EQ(row, 12u);
  ASSERT_GT(counts.bad_lines, 0);
  ASSERT_GT(counts.lines, 0);
  const std::string said = counts.first_bad_lines[0].text({path});
  EXPECT_NE(said.find("lz4_v1.parquet, row "), said.npos) << said;
  EXPECT_NE(said.find("--max-document-bytes is 400"), said.npos) << said;
}

TEST(ParquetChunks, NotAsText) {
  const std::string path = golden("none_v1.parquet");
  EXPECT_NO_THROW(check_are_text({path}, LineFormat::automatic));
  EXPECT_THROW(check_are_text({path}, LineFormat::text), Error);
  LineReader reader({path}, {.format = LineFormat::text});
  LineChunk chunk;
  EXPECT_THROW(reader.next(chunk), Error);
}

}  // namespace
}  // namespace bloomery
