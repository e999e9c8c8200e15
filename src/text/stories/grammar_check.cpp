#include <algorithm>
#include <optional>

#include "base/error.h"
#include "text/stories/grammar.h"

namespace bloomery {
namespace {

using Kind = GrammarNode::Kind;

// The words that the texts of each node begin with.
class FirstWords {
 public:
  explicit FirstWords(GrammarParts& parts) : parts_(parts), of_node_(parts.nodes.size()) {}

  // NOLINTNEXTLINE(misc-no-recursion): stops at the first rule that recurs.
  const std::vector<WordId>& of(NodeId id) {
    if (of_node_[id].found) return *of_node_[id].found;
    check(!of_node_[id].being_found, "story grammar, line ", parts_.nodes[id].line,
          ": the rule recurs");
    of_node_[id].being_found = true;
    std::vector<WordId> words;
    if (parts_.nodes[id].kind == Kind::word) {
      words = {parts_.nodes[id].word};
    }
    for (std::uint32_t part = 0; part < parts_.nodes[id].parts.size(); ++part) {
      const std::vector<WordId>& more = of(parts_.nodes[id].parts[part]);
      if (parts_.nodes[id].kind != Kind::sequence || part == 0) {
        add(parts_.nodes[id], part, more, words);
      }
    }
    of_node_[id].found = std::move(words);
    return *of_node_[id].found;
  }

 private:
  struct State {
    bool being_found = false;
    std::optional<std::vector<WordId>> found;
  };

  void add(GrammarNode& node, std::uint32_t part, const std::vector<WordId>& more,
           std::vector<WordId>& words) const {
    for (const WordId word : more) {
      if (node.decides()) {
        check(node.part_of_word.emplace(word, part).second, "story grammar, line ", node.line,
              ": two alternatives begin with '", parts_.words[word], "'");
      }
      if (std::ranges::find(words, word) == words.end()) words.push_back(word);
    }
  }

  GrammarParts& parts_;
  std::vector<State> of_node_;
};

// Walks all ways through the grammar with what was introduced so far.
class VariableWalk {
 public:
  enum class Introduced { never, on_some_ways, always };
  using State = std::vector<Introduced>;  // of variable

  explicit VariableWalk(const GrammarParts& parts) : parts_(parts) {}

  // NOLINTNEXTLINE(misc-no-recursion): the grammar does not recur.
  State after(NodeId id, State state) {
    const GrammarNode& node = parts_.nodes[id];
    if (node.kind == Kind::word) return state;
    if (node.kind == Kind::sequence) {
      for (const NodeId part : node.parts) state = after(part, std::move(state));
      return state;
    }
    if (node.kind != Kind::choice) enter(node, state);
    State joined = after(node.parts[0], state);
    for (std::size_t part = 1; part < node.parts.size(); ++part) {
      const State other = after(node.parts[part], state);
      for (std::size_t i = 0; i < joined.size(); ++i) {
        if (joined[i] != other[i]) joined[i] = Introduced::on_some_ways;
      }
    }
    return joined;
  }

 private:
  void enter(const GrammarNode& node, State& state) const {
    Introduced& variable = state[node.variable];
    const std::string& name = parts_.variables[node.variable];
    if (node.kind == Kind::introduce) {
      check(variable == Introduced::never, "story grammar, line ", node.line, ": ", name,
            " may have been introduced before");
      variable = Introduced::always;
    }
    check(variable == Introduced::always, "story grammar, line ", node.line, ": ", name,
          " may not have been introduced yet");
  }

  const GrammarParts& parts_;
};

}  // namespace

void check_deterministic(GrammarParts& parts) {
  FirstWords first(parts);
  for (NodeId id = 0; id < parts.nodes.size(); ++id) first.of(id);
}

void check_variables(const GrammarParts& parts) {
  const VariableWalk::State none(parts.variables.size(), VariableWalk::Introduced::never);
  VariableWalk(parts).after(parts.start, none);
}

}  // namespace bloomery
