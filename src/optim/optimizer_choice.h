// The optimizer that flags choose, with the numbers that they give it.
#pragma once

#include <string>
#include <tuple>
#include <vector>

#include "config/option_table.h"
#include "ops/optimizer/rules.h"

namespace bloomery {

// Number of the first word of --optimizer that chooses a rule; zero: "adam".
enum class OptimizerWord : std::int64_t {};

struct OptimizerChoice {
  OptimizerWord word{};
  EveryRule rules;  // with the numbers of the flags

  OptimizerRule rule() const;
};
void describe(OptionTable& table, OptimizerChoice& choice);

// Every word of --optimizer with the rule that it chooses.
std::vector<std::pair<std::string, OptimizerRule>> optimizer_words();

}  // namespace bloomery
