// Reads a regular expression, one construct at a time.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "tokenizer/regex/syntax.h"

namespace bloomery::regex {

class Parser {
 public:
  Parser(std::string_view text, Dialect dialect);
  Node parse_all();

 private:
  struct Flags {
    bool any_case = false;
    bool dot_is_all = false;
    bool lines = false;   // ^ and $ match at ends of lines
    bool spaced = false;  // blanks and comments are left out
  };
  // How deep groups and sets may stand in one another: each takes stack.
  static constexpr int kDeepest = 100;
  class Deeper;

  // parser.cpp: alternatives, repetitions, groups.
  Node parse_choice();
  Node parse_sequence();
  Node parse_atom();
  Node parse_repeats(Node atom);
  bool read_interval(std::uint32_t& least, std::uint32_t& most);
  Node parse_group();
  Node parse_special_group();
  // The flags of "(?i" up to ':' or ')'.
  void read_flags();
  void skip_blanks();

  // escapes.cpp: what stands for a character or a set of them.
  Node parse_escape();
  std::optional<Node> parse_assertion(char32_t letter);
  // A class such as \s or \p{L}; nothing when the escape is for one character.
  std::optional<CodeSet> parse_class_escape(bool in_set);
  char32_t parse_code_escape();
  char32_t read_hex(std::size_t most_digits);
  CodeSet parse_property(bool inverted);
  CodeSet parse_set();  // what follows '['
  CodeSet parse_set_items();
  std::optional<CodeSet> parse_posix();
  char32_t parse_set_character();
  CodeSet folded_set(CodeSet set) const;
  Node literal(char32_t code);
  void check_long_folds(const Node& sequence) const;

  bool at_end() const { return at_ == text_.size(); }
  bool next_is(std::string_view what) const { return text_.substr(at_).starts_with(what); }
  bool take(std::string_view what);
  char32_t take_code();
  [[noreturn]] void fail(std::string_view why) const;

  std::string_view text_;
  Dialect dialect_;
  std::size_t at_ = 0;
  int depth_ = 0;
  Flags flags_;
};

}  // namespace bloomery::regex
