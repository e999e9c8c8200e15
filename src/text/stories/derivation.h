// One derivation of a grammar, word by word from the left.
#pragma once

#include <functional>
#include <map>
#include <vector>

#include "text/stories/grammar.h"

namespace bloomery {

class Derivation {
 public:
  explicit Derivation(const Grammar& grammar);  // the grammar must outlive it

  // Nothing more can follow.
  bool complete() const { return open_.empty(); }

  // Takes `word` as the next one and returns its probability after the words before it; 0, and
  // the derivation is of no more use, when it cannot follow. Not after complete().
  double take(WordId word);

  // Decides by `draw`, which gives a number below its argument, until the next word is settled.
  WordId take_drawn(const std::function<std::uint64_t(std::uint64_t)>& draw);

  // What can come next, with probabilities; found without the decisions by words that take() uses.
  std::map<WordId, double> continuations() const;

 private:
  using Records = std::vector<std::uint32_t>;  // of variable

  void open(const GrammarNode& node, std::uint32_t part);
  void add_first_words(NodeId id, double probability, Records& records,
                       std::map<WordId, double>& words) const;

  const Grammar* grammar_;
  std::vector<NodeId> open_;  // still to derive, the next one last
  Records records_;
};

}  // namespace bloomery
