#include "text/transform/transform_files.h"

#include <gtest/gtest.h>

#include <sstream>

#include "base/file.h"
#include "base/temporary_folder.h"
#include "harness/golden_errors.h"
#include "text/transform/resumable_files.h"

namespace bloomery {
namespace {

class KeepAll : public LineTransform {
 public:
  void apply(const LineChunk&, const DocumentLine& line, Transformed& out) override {
    out.keep(line, "text");
  }
};

// Runs on a Parquet file; returns what was kept.
std::string transformed(const TransformJob& job, std::string& messages) {
  std::ostringstream said;
  const LineOptions options{.input = {job.input}};
  const LineCaller caller{.messages = said, .go_on = [] { return true; }};
  const TransformResult result = transform_files(options, caller, {job}, {"settings"},
                                                 [] { return std::make_unique<KeepAll>(); });
  EXPECT_TRUE(result.complete);
  EXPECT_EQ(result.lines, std::vector<std::uint64_t>{12});
  messages = said.str();
  return read_file(job.kept);
}

TEST(TransformFiles, RowsOfParquetGoOnWhereTheyWere) {
  const TemporaryFolder folder;
  const std::string golden = testing::repository_root() + "/tests/golden/parquet/lz4_v1";
  const std::string lines = read_file(golden + ".jsonl");
  const auto job_in = [&](const char* name) {
    std::filesystem::create_directory(folder.path() / name);
    return jobs_in(folder.path() / name, {golden + ".parquet"}, false)[0];
  };
  std::string messages;
  const TransformJob whole = job_in("whole"), resumed = job_in("resumed");
  EXPECT_EQ(whole.kept, folder.path() / "whole/lz4_v1.jsonl");
  EXPECT_EQ(transformed(whole, messages), lines);
  EXPECT_EQ(messages.find("going on with"), messages.npos);

  std::size_t at = 0;  // behind the first nine lines
  for (int i = 0; i < 9; ++i) at = lines.find('\n', at) + 1;
  {
    ResumableFiles files(resumed.outputs(), "settings\ninput: " + input_identity(resumed.input),
                         false);
    FileProgress progress;
    progress.offset = progress.line = 9;
    progress.jsonl = true;
    progress.report.documents = 9;
    files.append(0, lines.substr(0, at));
    files.save(progress);
  }
  EXPECT_EQ(transformed(resumed, messages), lines);
  EXPECT_NE(messages.find("lz4_v1.parquet at row 9\n"), messages.npos) << messages;
}

}  // namespace
}  // namespace bloomery
