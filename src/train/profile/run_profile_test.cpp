#include "train/profile/run_profile.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "base/temporary_folder.h"

namespace bloomery {
namespace {

TEST(RunProfile, TraceThatCannotBeWrittenIsSaidAndTriedAgain) {
  const TemporaryFolder folder;
  RankOptions options;
  options.model.num_layers = 1;
  options.model.hidden_size = 16;
  options.model.attention.num_heads = 2;
  options.model.vocabulary.size = 50;
  options.model.positions.max_length = 8;
  options.device = {.num_threads = 1};
  Rank rank(options);
  const std::filesystem::path file = folder.path() / "later" / "trace.json";
  RunProfile profile(rank, {.profile_steps = {1, 2}}, file);
  profile.begin(1);
  const std::string first = profile.end(1);
  EXPECT_NE(first.find("where the time went"), std::string::npos) << first;
  EXPECT_NE(first.find("it is written at the end if that works"), std::string::npos) << first;
  std::filesystem::create_directory(folder.path() / "later");
  const std::string second = profile.finish();
  EXPECT_TRUE(second.starts_with("trace of iterations 1 to 1: " + file.string())) << second;
  EXPECT_NE(read_file(file).find("traceEvents"), std::string::npos);
  EXPECT_EQ(profile.finish(), "");
}

TEST(RunProfile, TracesOfEarlierRunsStay) {
  const TemporaryFolder folder;
  PretrainOptions options;
  options.checkpoint.save = folder.path();
  for (const char* name : {"trace.json", "trace-2.json", "trace-3.json"}) {
    const std::filesystem::path path = trace_file(options);
    EXPECT_EQ(path, folder.path() / name);
    folder.file(name, "");
  }
}

}  // namespace
}  // namespace bloomery
