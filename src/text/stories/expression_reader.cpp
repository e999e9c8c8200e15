#include "text/stories/expression_reader.h"

#include <charconv>

#include "base/error.h"
#include "text/stories/words.h"

namespace bloomery {

using Kind = GrammarNode::Kind;

// Sums of weights stay far below the 32 bits that a decision draws.
constexpr std::uint32_t kMaxWeight = 1000;

ExpressionReader::Weighted ExpressionReader::read_line(std::string_view text, int line) {
  text_ = text;
  at_ = 0;
  line_ = line;
  const Weighted result = read_sequence();
  check(at_end(), "story grammar, line ", line_, ": '", text_.substr(at_), "' is out of place");
  return result;
}

void ExpressionReader::skip_spaces() {
  while (!at_end() && text_[at_] == ' ') ++at_;
}

std::uint32_t ExpressionReader::read_weight() {
  skip_spaces();
  std::uint32_t weight = 1;
  const char* const end = text_.data() + text_.size();
  const auto [stop, error] = std::from_chars(text_.data() + at_, end, weight);
  if (error == std::errc::invalid_argument) return 1;
  check(error == std::errc{} && weight > 0 && weight <= kMaxWeight && stop != end && *stop == '*',
        "story grammar, line ", line_, ": a weight is a number from 1 to ", kMaxWeight,
        " and a star");
  at_ = static_cast<std::size_t>(stop + 1 - text_.data());
  return weight;
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as the brackets of a line.
ExpressionReader::Weighted ExpressionReader::read_sequence() {
  const std::uint32_t weight = read_weight();
  GrammarNode node{.kind = Kind::sequence, .line = line_, .parts = {}};
  for (skip_spaces(); !at_end() && text_[at_] != '|' && text_[at_] != ')'; skip_spaces()) {
    node.parts.push_back(read_item());
  }
  check(!node.parts.empty(), "story grammar, line ", line_, ": an empty alternative");
  return {node.parts.size() == 1 ? node.parts[0] : add(node), weight};
}

// NOLINTNEXTLINE(misc-no-recursion)
NodeId ExpressionReader::read_item() {
  switch (text_[at_]) {
    case '(':
      return read_choice();
    case '{':
      return read_reference('}');
    case '<':
      return read_reference('>');
    default:
      return add_word();
  }
}

// NOLINTNEXTLINE(misc-no-recursion)
NodeId ExpressionReader::read_choice() {
  std::vector<Weighted> alternatives;
  do {
    ++at_;  // ( or |
    alternatives.push_back(read_sequence());
  } while (!at_end() && text_[at_] == '|');
  check(!at_end(), "story grammar, line ", line_, ": a bracket is not closed");
  ++at_;
  return add_choice(alternatives, line_);
}

NodeId ExpressionReader::read_reference(char closing) {
  const std::size_t end = text_.find(closing, at_);
  check(end != std::string_view::npos, "story grammar, line ", line_, ": no ", closing);
  const std::string name(text_.substr(at_ + 1, end - at_ - 1));
  at_ = end + 1;
  Reference reference{
      .node = 0, .line = line_, .rule = {}, .variable = {}, .table = {}, .field = {}};
  if (closing == '>') {
    reference.rule = name;
    reference.node = add({.kind = Kind::sequence, .line = line_, .parts = {}});
  } else {
    const std::size_t colon = name.find(':'), dot = name.find('.');
    check(dot != std::string::npos && (colon == std::string::npos || colon < dot),
          "story grammar, line ", line_, ": {", name,
          "} is neither {variable:table.field} nor {variable.field}");
    const bool introduces = colon != std::string::npos;
    reference.variable = name.substr(0, introduces ? colon : dot);
    reference.table = introduces ? name.substr(colon + 1, dot - colon - 1) : "";
    reference.field = name.substr(dot + 1);
    reference.node = add({.kind = introduces ? Kind::introduce : Kind::mention,
                          .line = line_,
                          .variable = variable(reference.variable),
                          .parts = {}});
  }
  references_.push_back(reference);
  return reference.node;
}

NodeId ExpressionReader::add_word() {
  const std::size_t end = text_.find_first_of(" (){}<>|", at_);
  const auto words = split_words(text_.substr(at_, end - at_));
  check(words.has_value() && !words->empty(), "story grammar, line ", line_, ": '",
        text_.substr(at_, end - at_), "' is no word");
  const std::string_view word = words->front();
  at_ += word.size();
  const auto [found, is_new] =
      words_.try_emplace(std::string(word), static_cast<WordId>(parts_.words.size()));
  if (is_new) parts_.words.emplace_back(word);
  return add({.kind = Kind::word, .line = line_, .word = found->second, .parts = {}});
}

NodeId ExpressionReader::add_choice(const std::vector<Weighted>& alternatives, int line) {
  if (alternatives.size() == 1) return alternatives[0].node;
  GrammarNode node{.kind = Kind::choice, .line = line, .parts = {}};
  for (const Weighted& alternative : alternatives) {
    node.parts.push_back(alternative.node);
    node.weights.push_back(alternative.weight);
    node.total_weight += alternative.weight;
  }
  return add(std::move(node));
}

VariableId ExpressionReader::variable(const std::string& name) {
  const auto [found, is_new] =
      variables_.try_emplace(name, static_cast<VariableId>(parts_.variables.size()));
  if (is_new) parts_.variables.push_back(name);
  return found->second;
}

NodeId ExpressionReader::add(GrammarNode node) {
  parts_.nodes.push_back(std::move(node));
  return static_cast<NodeId>(parts_.nodes.size() - 1);
}

}  // namespace bloomery
