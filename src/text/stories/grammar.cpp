#include "text/stories/grammar.h"

#include <cmath>
#include <functional>
#include <optional>

namespace bloomery {
namespace {

// The mean over all derivations of a sum of costs of words and decisions.
//
// Expectations add up, so each node counts by itself: a mention is the mean over the records, which
// are drawn independently of everything else. Only inside the expansion of a record is it known
// which one the variable keeps.
class Expectation {
 public:
  Expectation(const Grammar& grammar, double word_cost, std::function<double(double)> decision_cost)
      : grammar_(grammar),
        word_cost_(word_cost),
        decision_cost_(std::move(decision_cost)),
        known_(grammar.num_variables()) {}

  // NOLINTNEXTLINE(misc-no-recursion): as deep as the grammar, which does not recur.
  double of(NodeId id) {
    const GrammarNode& node = grammar_.node(id);
    using Kind = GrammarNode::Kind;
    if (node.kind == Kind::word) return word_cost_;
    if (node.kind == Kind::mention && known_[node.variable]) {
      return of(node.parts[*known_[node.variable]]);
    }
    double sum = 0;
    for (std::size_t part = 0; part < node.parts.size(); ++part) {
      if (node.kind == Kind::sequence) {
        sum += of(node.parts[part]);
        continue;
      }
      const bool is_record = node.kind != Kind::choice;
      if (is_record) known_[node.variable] = part;
      const double p = node.probability(part);
      sum += p * (of(node.parts[part]) + (node.decides() ? decision_cost_(p) : 0.0));
      if (is_record) known_[node.variable].reset();
    }
    return sum;
  }

 private:
  const Grammar& grammar_;
  double word_cost_;
  std::function<double(double)> decision_cost_;
  std::vector<std::optional<std::size_t>> known_;
};

}  // namespace

Grammar::Grammar(std::string_view text) : parts_(read_grammar(text)) {
  check_deterministic(parts_);
  check_variables(parts_);
  for (WordId id = 0; id < parts_.words.size(); ++id) {
    ids_.emplace(parts_.words[id], id);
  }
}

bool Grammar::find(std::string_view word, WordId& id) const {
  const auto found = ids_.find(std::string(word));
  if (found == ids_.end()) return false;
  id = found->second;
  return true;
}

double Grammar::entropy() const {
  return Expectation(*this, 0, [](double p) { return -std::log(p); }).of(start());
}

double Grammar::mean_length() const {
  return Expectation(*this, 1, [](double) { return 0.0; }).of(start());
}

}  // namespace bloomery
