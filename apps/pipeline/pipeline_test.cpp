#include "apps/pipeline/pipeline.h"

#include <gtest/gtest.h>

#include "apps/common/command_case.h"
#include "base/file.h"
#include "base/temporary_folder.h"

namespace bloomery {
namespace {

TEST(PipelineCommand, SaysHowLongStagesWait) {
  EXPECT_EQ(expect_command({"pipeline", "--stages", "4", "--micro-batches", "8"}),
            "4 stages, 8 micro-batches: a step takes 33, stages wait 37.50 % of the time they work "
            "and hold 1 to 4 passes\n");
  const TemporaryFolder folder;
  const std::string picture = folder.path() / "picture.svg";
  const std::string text = expect_command(
      {"pipeline", "--stages", "4", "--micro-batches", "8", "--chunks", "2", "--svg", picture});
  EXPECT_NE(text.find("wait 18.75 %"), std::string::npos) << text;
  EXPECT_TRUE(read_file(picture).starts_with("<svg"));
}

TEST(PipelineCommand, RefusesWhatHasNoSchedule) {
  const Outcome outcome =
      run_command({"pipeline", "--stages", "4", "--micro-batches", "6", "--chunks", "2"});
  EXPECT_EQ(outcome.code, kBadInput);
  EXPECT_TRUE(outcome.says("in multiples of 4 stages, not 6")) << outcome.errors;
}

}  // namespace
}  // namespace bloomery
