#include "apps/parity/parity.h"

#include <gtest/gtest.h>

#include "apps/common/command_case.h"

namespace bloomery {
namespace {

TEST(ParityCommand, ComparesLayoutsWithOneRank) {
  const std::string text = expect_command({"parity", "--layouts", "tp2sp,pp2zb,dp2z3", "--steps",
                                           "2", "--num-threads", "1", "--hidden-dropout", "0.1"});
  for (const char* line : {"tp2+sp (2 ranks): like one rank within 1e-05",
                           "pp2+zb (2 ranks): like one rank", "dp2+z3 (2 ranks): like one rank"}) {
    EXPECT_NE(text.find(line), std::string::npos) << text;
  }
}

TEST(ParityCommand, SaysWhereALayoutLeavesTheBand) {
  const Outcome tight =
      run_command({"parity", "--layouts", "tp4", "--band", "0", "--num-threads", "1"});
  EXPECT_EQ(tight.code, kFailed);
  EXPECT_TRUE(tight.says("leaves the band at step 1:")) << tight.out;
}

TEST(ParityCommand, RefusesLayoutsBeforeAnyWork) {
  const auto refused = [](const std::string& layouts, const std::string& why) {
    const Outcome outcome = run_command({"parity", "--layouts", layouts});
    EXPECT_EQ(outcome.code, kBadInput) << layouts;
    EXPECT_TRUE(outcome.says(why)) << outcome.errors;
  };
  refused("tp3", "tp3: 8 key/value heads cannot be divided among 3");
  refused("dp3", "micro-batches cannot be divided");
  refused("pp9", "pp9: 9 parts of a pipeline need as many layers, not 4");
  refused("pp2v2gpipe", "only the schedule 1f1b interleaves");
  refused("qq2", "means nothing");
}

}  // namespace
}  // namespace bloomery
