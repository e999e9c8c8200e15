#include "optim/optimizer_choice.h"

#include <gtest/gtest.h>

#include <set>

#include "base/error.h"

namespace bloomery {
namespace {

OptimizerRule chosen(const std::vector<std::string>& flags) {
  OptimizerChoice choice;
  OptionTable table;
  describe(table, choice);
  table.read_flags(flags);
  table.finish();
  return choice.rule();
}

TEST(OptimizerChoice, WordsChooseRulesAndFlagsTheirNumbers) {
  EXPECT_EQ(chosen({}), OptimizerRule(Adam{}));
  EXPECT_EQ(chosen({"--optimizer", "adamw"}), OptimizerRule(Adam{}));
  EXPECT_EQ(chosen({"--optimizer", "adam-l2", "--adam-beta2", "0.95"}),
            OptimizerRule(Adam{.beta2 = 0.95, .decoupled = false}));
  EXPECT_EQ(chosen({"--optimizer", "sgd", "--sgd-momentum", "0", "--adam-beta1", "0.5"}),
            OptimizerRule(Momentum{.momentum = 0}));
  EXPECT_EQ(chosen({"--lion-beta2", "0.98", "--optimizer", "lion"}),
            OptimizerRule(Lion{.beta2 = 0.98}));
}

TEST(OptimizerChoice, WordsOfOneRuleAreOneOptimizer) {
  const auto word = [](const std::string& given) {
    OptimizerChoice choice;
    OptionTable table;
    describe(table, choice);
    table.read_flags({"--optimizer", given});
    return table.row("optimizer").value_text();
  };
  EXPECT_EQ(word("adamw"), "adam");
  EXPECT_EQ(word("adam-l2"), "adam-l2");
  EXPECT_EQ(word("lion"), "lion");
}

TEST(OptimizerChoice, NumbersAreChecked) {
  EXPECT_THROW(chosen({"--optimizer", "adagrad"}), Error);
  EXPECT_THROW(chosen({"--lion-beta1", "1"}), Error);
  EXPECT_THROW(chosen({"--adam-eps", "0"}), Error);
}

// What names, counts and files of the state are made of.
TEST(OptimizerRules, DeclareDistinctStateOfWhichKernelsHaveRoom) {
  for_each_rule([]<class Rule>(const Rule&) {
    static_assert(1 <= std::size(Rule::kState) && std::size(Rule::kState) <= kMaxStateTensors);
    std::set<std::string> ours, foreign;
    for (const StateTensor& each : Rule::kState) {
      EXPECT_TRUE(ours.insert(each.name).second) << Rule::kName;
      EXPECT_TRUE(foreign.insert(each.foreign).second) << Rule::kName;
    }
  });
  EXPECT_EQ(every_state_tensor().size(), 3u);
}

}  // namespace
}  // namespace bloomery
