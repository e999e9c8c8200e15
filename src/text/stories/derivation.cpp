#include "text/stories/derivation.h"

#include <cassert>

namespace bloomery {

using Kind = GrammarNode::Kind;

Derivation::Derivation(const Grammar& grammar)
    : grammar_(&grammar), open_{grammar.start()}, records_(grammar.num_variables()) {}

// Replaces the next node, which is not a word, by its parts; `part` of one that decides.
void Derivation::open(const GrammarNode& node, std::uint32_t part) {
  open_.pop_back();
  if (node.kind == Kind::sequence) {
    open_.insert(open_.end(), node.parts.rbegin(), node.parts.rend());
    return;
  }
  if (node.kind == Kind::introduce) records_[node.variable] = part;
  open_.push_back(node.parts[node.kind == Kind::mention ? records_[node.variable] : part]);
}

double Derivation::take(WordId word) {
  assert(!complete());
  double probability = 1;
  for (;;) {
    const GrammarNode& node = grammar_->node(open_.back());
    if (node.kind == Kind::word) {
      open_.pop_back();
      return node.word == word ? probability : 0.0;
    }
    std::uint32_t part = 0;
    if (node.decides()) {
      const auto found = node.part_of_word.find(word);
      if (found == node.part_of_word.end()) return 0.0;
      part = found->second;
      probability *= node.probability(part);
    }
    open(node, part);
  }
}

WordId Derivation::take_drawn(const std::function<std::uint64_t(std::uint64_t)>& draw) {
  assert(!complete());
  for (;;) {
    const GrammarNode& node = grammar_->node(open_.back());
    if (node.kind == Kind::word) {
      open_.pop_back();
      return node.word;
    }
    std::uint32_t part = 0;
    if (node.decides()) {
      std::uint64_t drawn = draw(node.total_weight);
      while (drawn >= node.weights[part]) drawn -= node.weights[part++];
    }
    open(node, part);
  }
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as the grammar, which does not recur.
void Derivation::add_first_words(NodeId id, double probability, Records& records,
                                 std::map<WordId, double>& words) const {
  const GrammarNode& node = grammar_->node(id);
  if (node.kind == Kind::word) {
    words[node.word] += probability;
  } else if (node.kind == Kind::sequence) {
    add_first_words(node.parts[0], probability, records, words);
  } else if (node.kind == Kind::mention) {
    add_first_words(node.parts[records[node.variable]], probability, records, words);
  } else {
    for (std::uint32_t part = 0; part < node.parts.size(); ++part) {
      if (node.kind == Kind::introduce) records[node.variable] = part;
      add_first_words(node.parts[part], probability * node.probability(part), records, words);
    }
  }
}

std::map<WordId, double> Derivation::continuations() const {
  std::map<WordId, double> words;
  Records records = records_;
  if (!complete()) add_first_words(open_.back(), 1.0, records, words);
  return words;
}

}  // namespace bloomery
