// Records from Parquet files; those from JSON are in instruct_test.cpp.
#include "samples/instruct/record_source.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "harness/golden_errors.h"
#include "text/input/line_format.h"

namespace bloomery {
namespace {

TEST(RecordSource, RowsOfParquet) {
  const std::string golden = testing::repository_root() + "/tests/golden/parquet/snappy_v1";
  RecordSource source({golden + ".jsonl", golden + ".parquet"});
  std::vector<std::string> found[2];
  LineChunk chunk;
  std::int64_t line = 0;
  while (source.next(chunk)) {
    line = chunk.first_of_file ? 0 : line;
    const std::string_view text = chunk.bytes();
    for (std::size_t at = 0; at < text.size(); ++line) {
      found[chunk.file].push_back(
          concat(source.place(chunk.file, line), ": ", next_line(text, at)));
    }
  }
  const std::string lines = read_file(golden + ".jsonl");
  std::size_t at = 0;
  ASSERT_EQ(found[0].size(), 12u);
  ASSERT_EQ(found[1].size(), 12u);
  for (std::size_t i = 0; i < 12; ++i) {
    const std::string record(next_line(lines, at));
    EXPECT_EQ(found[0][i], concat("line ", i + 1, ": ", record));
    EXPECT_EQ(found[1][i], concat("row ", i, ": ", record));
  }
}

}  // namespace
}  // namespace bloomery
