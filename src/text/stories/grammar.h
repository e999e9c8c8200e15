// A probabilistic grammar with memory: what a story introduces once (its hero, its place) it can
// mention again. Every text has at most one derivation, so that the probability of a text is the
// product of the decisions of that one and the grammar's entropy is a finite sum.
//
// The grammar is a text of tables and rules:
//
//   # Fields of a record are separated by slashes.
//   table child: name / he
//     Mia / she
//     Tom / he
//
//   # Each line is one alternative; lines indented further go on with it. The first rule is the
//   # start.
//   rule story
//     {hero:child.name} (smiled|3*laughed) and {hero.he} <went>.
//   rule went
//     went home
//     sang
//
// {hero:child.name} draws a record of the table and writes its field; {hero.he} writes another
// field of the same record. (a|3*b) draws an alternative, here b three times as often; lines of
// rules and records take such weights too.
//
// What makes it unambiguous is checked when it is read: nothing derives the empty text, rules do
// not recur, and at every decision the alternatives begin with different words (LL(1)). Then the
// next word of a text settles every decision before it, from left to right.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace bloomery {

using WordId = std::uint32_t;
using NodeId = std::uint32_t;
using VariableId = std::uint32_t;

struct GrammarNode {
  enum class Kind {
    word,
    sequence,   // all parts in order
    choice,     // one part, drawn by weight
    introduce,  // one part, drawn by weight; the variable keeps which
    mention     // the part that the variable tells
  };
  Kind kind = Kind::word;
  int line = 0;  // of the grammar's text
  WordId word = 0;
  VariableId variable = 0;
  std::vector<NodeId> parts;
  std::vector<std::uint32_t> weights = {};  // of choice and introduce
  std::uint64_t total_weight = 0;
  std::unordered_map<WordId, std::uint32_t> part_of_word = {};  // the part that a first word means

  bool decides() const { return kind == Kind::choice || kind == Kind::introduce; }
  double probability(std::size_t part) const {
    return static_cast<double>(weights[part]) / static_cast<double>(total_weight);
  }
};

// What the reader makes of the text; references are resolved.
struct GrammarParts {
  std::vector<GrammarNode> nodes;
  std::vector<std::string> words;
  std::vector<std::string> variables;
  NodeId start = 0;
};

GrammarParts read_grammar(std::string_view text);

class Grammar {
 public:
  // An Error names the line of what is wrong.
  explicit Grammar(std::string_view text);

  NodeId start() const { return parts_.start; }
  const GrammarNode& node(NodeId id) const { return parts_.nodes[id]; }
  const std::string& word(WordId id) const { return parts_.words[id]; }
  std::size_t num_words() const { return parts_.words.size(); }
  std::size_t num_variables() const { return parts_.variables.size(); }
  // Whether the grammar has the word at all.
  bool find(std::string_view word, WordId& id) const;

  // The mean of -ln P over the texts of the grammar, exactly.
  double entropy() const;
  // The mean number of words and marks.
  double mean_length() const;

 private:
  GrammarParts parts_;
  std::unordered_map<std::string, WordId> ids_;
};

// Throws unless the grammar is as described above; fills part_of_word.
void check_deterministic(GrammarParts& parts);
// Throws unless every mention comes after one introduction on every way to it, and no variable is
// introduced twice on one way.
void check_variables(const GrammarParts& parts);

}  // namespace bloomery
