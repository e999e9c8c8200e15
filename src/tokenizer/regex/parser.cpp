#include "tokenizer/regex/parser.h"

#include <algorithm>

#include "base/error.h"
#include "tokenizer/utf8.h"

namespace bloomery::regex {
namespace {

Node sequence_of(std::vector<Node> parts) {
  if (parts.size() == 1) return std::move(parts[0]);
  Node node;
  node.parts = std::move(parts);
  return node;
}

Node group_of(GroupKind kind, Node body) {
  Node node{.kind = Node::Kind::group, .group = kind};
  node.parts.push_back(std::move(body));
  return node;
}

}  // namespace

class Parser::Deeper {
 public:
  explicit Deeper(Parser& parser) : parser_(parser) {
    if (++parser_.depth_ > kDeepest) parser_.fail("groups stand too deep in one another");
  }
  ~Deeper() { --parser_.depth_; }
  Deeper(const Deeper&) = delete;
  Deeper& operator=(const Deeper&) = delete;

 private:
  Parser& parser_;
};

Parser::Parser(std::string_view text, Dialect dialect) : text_(text), dialect_(dialect) {
  constexpr std::size_t kLongest = 20000;  // bytes
  check(text.size() <= kLongest, "a regular expression of ", text.size(), " bytes; at most ",
        kLongest, " are supported");
  check(is_utf8(text), "a regular expression that is not UTF-8");
  flags_.lines = dialect == Dialect::oniguruma;
}

void Parser::fail(std::string_view why) const {
  throw Error(concat("the regular expression '", text_, "', at byte ", at_, ": ", why));
}

bool Parser::take(std::string_view what) {
  if (!next_is(what)) return false;
  at_ += what.size();
  return true;
}

char32_t Parser::take_code() {
  if (at_end()) fail("it ends too early");
  const Utf8Char next = utf8_at(text_, at_);
  at_ += static_cast<std::size_t>(next.length);
  return next.code;
}

Node Parser::parse_all() {
  Node node = parse_choice();
  if (!at_end()) fail("a closing parenthesis without an opening one");
  return node;
}

Node Parser::parse_choice() {
  const Deeper deeper(*this);
  Node choice{.kind = Node::Kind::choice};
  do {
    choice.parts.push_back(parse_sequence());
  } while (take("|"));
  return choice.parts.size() == 1 ? std::move(choice.parts[0]) : choice;
}

Node Parser::parse_sequence() {
  Node sequence;
  for (skip_blanks(); !at_end() && !next_is("|") && !next_is(")"); skip_blanks()) {
    const bool sets_flags = next_is("(?") && at_ + 2 < text_.size() &&
                            std::string_view("imsx-").find(text_[at_ + 2]) != text_.npos;
    if (sets_flags) {
      const Flags before = flags_;
      at_ += 2;
      read_flags();
      if (take(":")) {
        Node body = parse_choice();
        if (!take(")")) fail("a group does not end");
        flags_ = before;
        sequence.parts.push_back(parse_repeats(std::move(body)));
        continue;
      }
      if (!take(")")) fail("flags that are not known");
      if (dialect_ == Dialect::rust) continue;
      // To the end of the group, alternatives included.
      sequence.parts.push_back(parse_choice());
      break;
    }
    sequence.parts.push_back(parse_repeats(parse_atom()));
  }
  if (flags_.any_case) check_long_folds(sequence);
  return sequence_of(std::move(sequence.parts));
}

void Parser::skip_blanks() {
  for (;;) {
    if (take("(?#")) {
      const std::size_t close = text_.find(')', at_);
      if (close == text_.npos) fail("a comment does not end");
      at_ = close + 1;
    } else if (flags_.spaced && !at_end() &&
               std::string_view(" \t\n\r\f\v").find(text_[at_]) != std::string_view::npos) {
      ++at_;
    } else if (flags_.spaced && next_is("#")) {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else {
      return;
    }
  }
}

void Parser::read_flags() {
  bool on = true;
  for (; !at_end() && !next_is(":") && !next_is(")"); ++at_) {
    const char flag = text_[at_];
    if (flag == '-') {
      on = false;
    } else if (flag == 'i') {
      flags_.any_case = on;
    } else if (flag == 'x') {
      flags_.spaced = on;
    } else if (flag == (dialect_ == Dialect::oniguruma ? 'm' : 's')) {
      flags_.dot_is_all = on;
    } else if (flag == 'm') {
      flags_.lines = on;
    } else {
      fail("a flag that is not known");
    }
  }
}

Node Parser::parse_atom() {
  const std::size_t start = at_;
  const char32_t code = take_code();
  Node node{.kind = Node::Kind::assertion};
  switch (code) {
    case '(':
      return parse_group();
    case '[':
      node.kind = Node::Kind::set;
      node.set = parse_set();
      return node;
    case '\\':
      return parse_escape();
    case '.':
      node.kind = Node::Kind::set;
      node.set = flags_.dot_is_all ? ~CodeSet() : ~CodeSet({{'\n', '\n'}});
      return node;
    case '^':
      node.assertion = flags_.lines ? Assertion::line_begin : Assertion::text_begin;
      return node;
    case '$':
      node.assertion = flags_.lines ? Assertion::line_end : Assertion::text_end;
      return node;
    case '?':
    case '*':
    case '+':
      at_ = start;
      fail("a repetition of nothing");
    default:
      return literal(code);
  }
}

Node Parser::parse_group() {
  const Flags before = flags_;
  Node node = take("?") ? parse_special_group() : parse_choice();
  if (!take(")")) fail("a group does not end");
  flags_ = before;
  return node;
}

Node Parser::parse_special_group() {
  if (take(":")) return parse_choice();
  if (take(">")) return group_of(GroupKind::atomic, parse_choice());
  if (take("=")) return group_of(GroupKind::ahead, parse_choice());
  if (take("!")) return group_of(GroupKind::not_ahead, parse_choice());
  if (take("<=")) return group_of(GroupKind::behind, parse_choice());
  if (take("<!")) return group_of(GroupKind::not_behind, parse_choice());
  if (take("<") || (dialect_ == Dialect::rust && take("P<"))) {
    const std::size_t close = text_.find('>', at_);
    if (close == text_.npos) fail("the name of a group does not end");
    at_ = close + 1;
    return parse_choice();
  }
  fail("a kind of group that is not supported");
}

// {n}, {n,}, {,n} and {n,m}; false, with nothing read, for braces that are none of these.
bool Parser::read_interval(std::uint32_t& least, std::uint32_t& most) {
  constexpr std::uint32_t kMost = 100000;
  std::size_t at = at_ + 1;
  const auto read = [&](std::uint32_t& number) {
    const std::size_t begin = at;
    for (number = 0; at < text_.size() && text_[at] >= '0' && text_[at] <= '9'; ++at) {
      number = std::min(number * 10 + static_cast<std::uint32_t>(text_[at] - '0'), kMost + 1);
    }
    if (number > kMost) fail("a repetition of more than 100000 times");
    return at > begin;
  };
  const bool has_least = read(least);
  const bool has_comma = at < text_.size() && text_[at] == ',';
  if (has_comma) ++at;
  const bool has_most = has_comma && read(most);
  if (at >= text_.size() || text_[at] != '}' || (!has_least && !has_most)) return false;
  if (!has_comma) most = least;
  if (has_comma && !has_most) most = Node::kEndless;
  at_ = at + 1;
  return true;
}

Node Parser::parse_repeats(Node atom) {
  int repeats = 0;
  for (skip_blanks(); !at_end(); skip_blanks()) {
    Node repeat{.kind = Node::Kind::repeat};
    const bool braces = next_is("{");
    if (take("?")) {
      repeat.most = 1;
    } else if (take("*")) {
      repeat.most = Node::kEndless;
    } else if (take("+")) {
      repeat.least = 1;
      repeat.most = Node::kEndless;
    } else if (!braces || !read_interval(repeat.least, repeat.most)) {
      break;
    }
    if (++repeats > kDeepest) fail("too many repetitions of repetitions");
    const bool swapped = repeat.least > repeat.most;
    if (swapped) std::swap(repeat.least, repeat.most);
    const bool ruby_braces = braces && dialect_ == Dialect::oniguruma;
    const bool fixed = ruby_braces && repeat.least == repeat.most;  // {3}? is (?:...{3})?
    if (swapped || (!ruby_braces && take("+"))) {
      repeat.greed = Greed::possessive;
    } else if (!fixed && take("?")) {
      repeat.greed = Greed::lazy;
    }
    repeat.parts.push_back(std::move(atom));
    atom = std::move(repeat);
  }
  return atom;
}

Node parse(std::string_view expression, Dialect dialect) {
  return Parser(expression, dialect).parse_all();
}

Width width_of(const Node& node) {
  Width width{0, 0};
  switch (node.kind) {
    case Node::Kind::set:
      return {1, 1};
    case Node::Kind::sequence:
      for (const Node& part : node.parts) {
        const Width of_part = width_of(part);
        width = {width.least + of_part.least, width.most + of_part.most};
      }
      break;
    case Node::Kind::choice:
      width.least = Node::kEndless;
      for (const Node& part : node.parts) {
        const Width of_part = width_of(part);
        width = {std::min(width.least, of_part.least), std::max(width.most, of_part.most)};
      }
      break;
    case Node::Kind::repeat: {
      const Width once = width_of(node.parts[0]);
      width = {once.least * node.least, once.most * node.most};
      break;
    }
    case Node::Kind::group:
      return node.group == GroupKind::atomic ? width_of(node.parts[0]) : width;
    case Node::Kind::assertion:
      break;
  }
  return {std::min<std::uint64_t>(width.least, Node::kEndless),
          std::min<std::uint64_t>(width.most, Node::kEndless)};
}

}  // namespace bloomery::regex
