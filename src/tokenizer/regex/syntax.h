// A regular expression as a tree. Characters are matched as sets; a group remembers nothing.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tokenizer/unicode/code_set.h"

namespace bloomery::regex {

// Whose rules an expression follows where they differ.
enum class Dialect {
  oniguruma,  // Ruby's, of tokenizer.json: ^ and $ are ends of lines, {1,3}+ repeats a repetition
  rust,       // fancy-regex's, of tiktoken: ^ and $ are ends of the text, {1,3}+ gives nothing back
};

enum class Greed : std::uint8_t { greedy, lazy, possessive };

enum class Assertion : std::uint8_t {
  text_begin,
  text_end,
  text_end_or_last_newline,
  line_begin,
  line_end,
  word_border,
  no_word_border,
};

enum class GroupKind : std::uint8_t { atomic, ahead, not_ahead, behind, not_behind };

struct Node {
  enum class Kind : std::uint8_t { set, sequence, choice, repeat, assertion, group };
  static constexpr std::uint32_t kEndless = UINT32_MAX;

  Kind kind = Kind::sequence;
  CodeSet set = {};
  std::vector<Node> parts = {};  // of a repeat or group: one
  std::uint32_t least = 0, most = 0;
  Greed greed = Greed::greedy;
  Assertion assertion = Assertion::text_begin;
  GroupKind group = GroupKind::atomic;
};

// An expression that is wrong, or has what is not supported (back references, conditions, absence
// operators, calls), is an Error that says what and where.
Node parse(std::string_view expression, Dialect dialect);

// How many characters a match of the node has.
struct Width {
  std::uint64_t least, most;  // most: at least Node::kEndless when there is no limit
};
Width width_of(const Node& node);

}  // namespace bloomery::regex
