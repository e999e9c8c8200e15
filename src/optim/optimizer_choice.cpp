#include "optim/optimizer_choice.h"

#include <algorithm>

namespace bloomery {
namespace {

Limits limits(NumberRange range) {
  return range == NumberRange::positive ? above(0) : from_to_below(0, 1);
}

}  // namespace

std::vector<std::pair<std::string, OptimizerRule>> optimizer_words() {
  std::vector<std::pair<std::string, OptimizerRule>> all;
  for_each_rule([&]<class Rule>(const Rule&) {
    for (const RuleWord<Rule>& each : Rule::words()) {
      all.emplace_back(each.word, each.rule);
    }
  });
  return all;
}

OptimizerRule OptimizerChoice::rule() const {
  OptimizerRule chosen = optimizer_words()[static_cast<std::size_t>(word)].second;
  std::visit(
      [&]<class Rule>(Rule& rule) {
        for (const RuleFlag<Rule>& flag : Rule::flags()) {
          rule.*flag.number = std::get<Rule>(rules).*flag.number;
        }
      },
      chosen);
  return chosen;
}

void describe(OptionTable& table, OptimizerChoice& choice) {
  const auto words = optimizer_words();
  std::vector<std::pair<std::string, OptimizerWord>> choices;
  for (const auto& [word, rule] : words) {
    const auto first = std::ranges::find(words, rule, [](const auto& each) { return each.second; });
    choices.emplace_back(word, static_cast<OptimizerWord>(first - words.begin()));
  }
  table.add("optimizer", choice.word,
            "Optimizer. adam and adamw decouple the weight decay, adam-l2 adds it to the gradient.",
            choices);
  for_each_rule([&]<class Rule>(const Rule&) {
    for (const RuleFlag<Rule>& flag : Rule::flags()) {
      table.add(flag.name, std::get<Rule>(choice.rules).*flag.number, flag.help,
                limits(flag.range));
    }
  });
}

}  // namespace bloomery
