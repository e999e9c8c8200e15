#include <algorithm>

#include "tokenizer/regex/parser.h"
#include "tokenizer/unicode/properties.h"

namespace bloomery::regex {
namespace {

constexpr std::string_view kLetters = "tnrfvae", kMeanings = "\t\n\r\f\v\a\x1B";

CodeSet one(char32_t code) { return CodeSet({{code, code}}); }

bool is_octal(char32_t code) { return code >= '0' && code <= '7'; }

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = static_cast<char>(c | 0x20);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// Oniguruma's \w has raised digits and fractions of Latin-1, but not inside of a set.
CodeSet words(bool in_set) {
  const CodeSet all = *property_named("word");
  return in_set ? all & ~CodeSet({{0xB2, 0xB3}, {0xB9, 0xB9}, {0xBC, 0xBE}}) : all;
}

}  // namespace

Node Parser::literal(char32_t code) {
  Node node{.kind = Node::Kind::set};
  node.set = flags_.any_case ? any_case(one(code)) : one(code);
  return node;
}

// Where case does not matter the references also take "ss" for U+00DF and the like.
void Parser::check_long_folds(const Node& sequence) const {
  const auto is_one_of = [&](std::size_t at, char32_t code) {
    return at < sequence.parts.size() && sequence.parts[at].kind == Node::Kind::set &&
           sequence.parts[at].set.ranges().size() < 8 && sequence.parts[at].set.contains(code);
  };
  for (std::size_t at = 0; at < sequence.parts.size(); ++at) {
    for (const LongFold& fold : long_folds()) {
      bool whole = true;
      for (std::size_t i = 0; i < fold.folded.size(); ++i) {
        whole = whole && is_one_of(at + i, fold.folded[i]);
      }
      if (whole || (is_one_of(at, fold.code) && !is_one_of(at, fold.folded[0]))) {
        fail(
            "letters that are one letter in another case, such as ss, are not supported with (?i)");
      }
    }
  }
}

CodeSet Parser::folded_set(CodeSet set) const { return flags_.any_case ? any_case(set) : set; }

Node Parser::parse_escape() {
  if (at_end()) fail("a backslash at the end");
  if (std::optional<Node> assertion = parse_assertion(static_cast<unsigned char>(text_[at_]))) {
    return *std::move(assertion);
  }
  if (take("R")) {  // \r\n as one, or any other end of a line
    Node pair, other{.kind = Node::Kind::set}, choice{.kind = Node::Kind::choice};
    for (const char32_t code : {U'\r', U'\n'}) {
      pair.parts.push_back({.kind = Node::Kind::set, .set = one(code)});
    }
    other.set = CodeSet({{'\n', '\r'}, {0x85, 0x85}, {0x2028, 0x2029}});
    choice.parts = {std::move(pair), std::move(other)};
    Node group{.kind = Node::Kind::group, .group = GroupKind::atomic};
    group.parts.push_back(std::move(choice));
    return group;
  }
  if (std::optional<CodeSet> set = parse_class_escape(/*in_set=*/false)) {
    return {.kind = Node::Kind::set, .set = *std::move(set)};
  }
  return literal(parse_code_escape());
}

std::optional<Node> Parser::parse_assertion(char32_t letter) {
  Node node{.kind = Node::Kind::assertion};
  switch (letter) {
    case 'b':
      node.assertion = Assertion::word_border;
      break;
    case 'B':
      node.assertion = Assertion::no_word_border;
      break;
    case 'A':
      node.assertion = Assertion::text_begin;
      break;
    case 'z':
      node.assertion = Assertion::text_end;
      break;
    case 'Z':
      node.assertion = Assertion::text_end_or_last_newline;
      break;
    case 'G':
    case 'K':
    case 'X':
    case 'y':
    case 'Y':
    case 'k':
    case 'g':
      fail("an escape that is not supported");
    default:
      if (letter >= '1' && letter <= '9') fail("back references are not supported");
      return std::nullopt;
  }
  ++at_;
  return node;
}

std::optional<CodeSet> Parser::parse_class_escape(bool in_set) {
  struct Class {
    char letter;
    std::string_view property;
  };
  constexpr Class kClasses[] = {{'s', "space"}, {'d', "nd"}, {'h', "xdigit"}};
  for (const auto& [letter, property] : kClasses) {
    if (take(std::string_view(&letter, 1))) return property_named(property);
    const char opposite = static_cast<char>(letter - 32);
    if (take(std::string_view(&opposite, 1))) return ~*property_named(property);
  }
  if (take("w")) return words(in_set);
  if (take("W")) return ~words(in_set);
  if (take("N")) return ~one('\n');
  if (take("O")) return ~CodeSet();
  if (next_is("p{") || next_is("P{")) {
    const bool inverted = text_[at_] == 'P';
    at_ += 2;
    return parse_property(inverted);
  }
  if (dialect_ == Dialect::rust && (next_is("p") || next_is("P"))) {
    const bool inverted = text_[at_++] == 'P';
    const char32_t letter = take_code();
    const char name = static_cast<char>(letter < 0x80 ? letter : '?');
    const std::optional<CodeSet> set = property_named({&name, 1});
    if (!set) fail("a property that is not known");
    return inverted ? ~*set : *set;
  }
  return std::nullopt;
}

CodeSet Parser::parse_property(bool inverted) {
  const std::size_t close = text_.find('}', at_);
  if (close == text_.npos) fail("the name of a property does not end");
  if (take("^")) inverted = !inverted;
  std::string_view name = text_.substr(at_, close - at_);
  for (const std::string_view prefix : {"Script=", "sc=", "General_Category=", "gc="}) {
    if (dialect_ == Dialect::rust && name.starts_with(prefix)) name.remove_prefix(prefix.size());
  }
  const std::optional<CodeSet> set = property_named(name);
  if (!set) fail("a property of characters that is not known");
  at_ = close + 1;
  return inverted ? ~*set : *set;
}

char32_t Parser::read_hex(std::size_t most_digits) {
  char32_t code = 0;
  for (std::size_t i = 0; i < most_digits && !at_end() && hex_digit(text_[at_]) >= 0; ++i, ++at_) {
    code = code * 16 + static_cast<char32_t>(hex_digit(text_[at_]));
    if (code > kLastCode) fail("a character above U+10FFFF");
  }
  return code;
}

// After the backslash.
char32_t Parser::parse_code_escape() {
  const char32_t letter = take_code();
  const std::size_t known =
      letter < 0x80 ? kLetters.find(static_cast<char>(letter)) : kLetters.npos;
  if (known != kLetters.npos) return static_cast<char32_t>(kMeanings[known]);
  if (letter == 'x' && take("{")) {
    const char32_t code = read_hex(8);
    if (!take("}")) fail("a character's number does not end");
    return code;
  }
  if (letter == 'x') {
    const std::size_t begin = at_;
    const char32_t code = read_hex(2);
    return at_ == begin ? 'x' : code;
  }
  if (letter == 'u') {
    const std::size_t begin = at_;
    const char32_t code = read_hex(4);
    if (at_ != begin + 4) fail("four digits must follow \\u");
    return code;
  }
  if (is_octal(letter)) {
    char32_t code = letter - '0';
    for (int i = 1; i < 3 && !at_end() && is_octal(static_cast<unsigned char>(text_[at_])); ++i) {
      code = code * 8 + static_cast<char32_t>(text_[at_++] - '0');
    }
    return code;
  }
  if (letter == 'c' || letter == 'C' || letter == 'M') fail("an escape that is not supported");
  return letter;
}

CodeSet Parser::parse_set() {
  if (++depth_ > kDeepest) fail("sets stand too deep in one another");
  const bool inverted = take("^");
  CodeSet set = parse_set_items();
  while (take("&&")) set = set & parse_set_items();
  if (!take("]")) fail("a set does not end");
  --depth_;
  return inverted ? ~set : set;
}

// [:alpha:] and its like.
std::optional<CodeSet> Parser::parse_posix() {
  const std::size_t end = text_.find(":]", at_);
  if (!next_is("[:") || end == text_.npos) return std::nullopt;
  std::string_view name = text_.substr(at_ + 2, end - at_ - 2);
  const bool inverted = name.starts_with("^");
  if (inverted) name.remove_prefix(1);
  const std::optional<CodeSet> set =
      name == "word" ? words(true) : property_named(name == "punct" ? "posixpunct" : name);
  if (!set || name.size() > 6) return std::nullopt;
  at_ = end + 2;
  return inverted ? ~*set : *set;
}

char32_t Parser::parse_set_character() {
  if (!take("\\")) return take_code();
  if (take("b")) return '\b';
  return parse_code_escape();
}

// Up to ']' or '&&'.
CodeSet Parser::parse_set_items() {
  std::vector<CodeRange> ranges;
  const auto add = [&](const CodeSet& set) {
    ranges.insert(ranges.end(), set.ranges().begin(), set.ranges().end());
  };
  const std::size_t begin = at_;
  while (!at_end() && (!next_is("]") || at_ == begin) && !next_is("&&")) {
    if (std::optional<CodeSet> posix = parse_posix()) {
      add(*posix);
      continue;
    }
    if (take("[")) {
      add(parse_set());
      continue;
    }
    if (next_is("\\") && at_ + 1 < text_.size()) {
      ++at_;
      if (const std::optional<CodeSet> set = parse_class_escape(/*in_set=*/true)) {
        add(*set);
        continue;
      }
      --at_;
    }
    const char32_t first = parse_set_character();
    char32_t last = first;
    const bool is_range = next_is("-") && at_ + 1 < text_.size() && text_[at_ + 1] != ']';
    if (is_range && text_.substr(at_ + 1, 1) != "[") {
      ++at_;
      last = parse_set_character();
      if (last < first) fail("a range whose end is before its beginning");
    }
    ranges.push_back({first, last});
  }
  return folded_set(CodeSet(std::move(ranges)));
}

}  // namespace bloomery::regex
