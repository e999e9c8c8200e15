// The optimizers there are.
#pragma once

#include <span>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include "ops/optimizer/rules/adam.h"
#include "ops/optimizer/rules/lion.h"
#include "ops/optimizer/rules/momentum.h"

namespace bloomery {

template <class... Rules>
struct RuleList {
  using Any = std::variant<Rules...>;
  using Every = std::tuple<Rules...>;
};
using OptimizerRules = RuleList<Adam, Momentum, Lion>;

using OptimizerRule = OptimizerRules::Any;
using EveryRule = OptimizerRules::Every;

template <class Body>
void for_each_rule(const Body& body) {
  std::apply([&](const auto&... rules) { (body(rules), ...); }, EveryRule());
}

inline const char* name_of(const OptimizerRule& rule) {
  return std::visit([]<class Rule>(const Rule&) { return Rule::kName; }, rule);
}

// What an optimizer keeps of each element, in the order of UpdateBuffers::state.
inline std::span<const StateTensor> state_of(const OptimizerRule& rule) {
  return std::visit(
      []<class Rule>(const Rule&) { return std::span<const StateTensor>(Rule::kState); }, rule);
}

// The state of all optimizers, each tensor of a foreign file once.
inline std::vector<StateTensor> every_state_tensor() {
  std::vector<StateTensor> all;
  for_each_rule([&]<class Rule>(const Rule&) {
    for (const StateTensor& tensor : Rule::kState) {
      bool known = false;
      for (const StateTensor& each : all) {
        known = known || std::string_view(each.foreign) == tensor.foreign;
      }
      if (!known) {
        all.push_back(tensor);
      }
    }
  });
  return all;
}

}  // namespace bloomery
