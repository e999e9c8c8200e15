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

// A picture that says what its colours are, no wider than a screen, however long the step.
TEST(PipelineCommand, PictureHasALegendAndFitsAScreen) {
  const TemporaryFolder folder;
  const std::string picture = folder.path() / "picture.svg";
  for (const auto& [schedule, kinds] :
       {std::pair<const char*, std::vector<const char*>>{"1f1b", {">forward<", ">backward<"}},
        {"zb-h1", {">forward<", ">backward, inputs<", ">backward, weights<"}}}) {
    for (const char* micro_batches : {"4", "8", "128"}) {
      expect_command({"pipeline", "--schedule", schedule, "--stages", "4", "--micro-batches",
                      micro_batches, "--svg", picture});
      const std::string svg = read_file(picture);
      for (const char* kind : kinds) EXPECT_NE(svg.find(kind), svg.npos) << kind;
      EXPECT_NE(svg.find(">waits<"), svg.npos);
      const std::size_t width = svg.find("width=\"") + 7;
      EXPECT_LE(std::stod(svg.substr(width)), 1300) << micro_batches;
      EXPECT_GE(std::stod(svg.substr(width)), 300) << micro_batches;
    }
  }
}

TEST(PipelineCommand, RefusesWhatHasNoSchedule) {
  const Outcome outcome =
      run_command({"pipeline", "--stages", "4", "--micro-batches", "6", "--chunks", "2"});
  EXPECT_EQ(outcome.code, kBadInput);
  EXPECT_TRUE(outcome.says("in multiples of 4 stages, not 6")) << outcome.errors;
}

}  // namespace
}  // namespace bloomery
