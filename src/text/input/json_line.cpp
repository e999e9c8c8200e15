#include "text/input/json_line.h"

#include "base/error.h"
#include "base/json_scan.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

bool is_digit(char byte) { return byte >= '0' && byte <= '9'; }

bool is_space(char byte) { return byte == ' ' || byte == '\t' || byte == '\n' || byte == '\r'; }

}  // namespace

JsonLineParser::JsonLineParser(std::vector<std::string> keys)
    : keys_(std::move(keys)), values_(keys_.size()) {}

bool JsonLineParser::fail(std::string_view why, std::size_t at) {
  fault_ = concat("invalid JSON: ", why, " (byte ", at, " of the line)");
  return false;
}

void JsonLineParser::skip_space() {
  while (at_ < line_.size() && is_space(line_[at_])) {
    ++at_;
  }
}

bool JsonLineParser::parse(std::string_view line) {
  line_ = line;
  at_ = 0;
  for (Value& value : values_) {
    value.kind = Kind::absent;
  }
  const std::size_t valid = valid_utf8_prefix(line);
  if (valid != line.size()) {
    fault_ = concat("invalid UTF-8 (byte ", valid, " of the line)");
    return false;
  }
  if (!parse_object_of_line()) {
    return false;
  }
  skip_space();
  if (at_ != line_.size()) {
    return fail("something follows the JSON object", at_);
  }
  return check_keys();
}

bool JsonLineParser::check_keys() {
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    if (values_[i].kind != Kind::text) {
      const bool absent = values_[i].kind == Kind::absent;
      fault_ = concat(absent ? "no key '" : "no string under the key '", keys_[i], "'");
      return false;
    }
  }
  return true;
}

bool JsonLineParser::parse_object_of_line() {
  skip_space();
  if (peek() != '{') {
    return fail("not a JSON object", at_);
  }
  ++at_;
  skip_space();
  if (peek() == '}') {
    ++at_;
    return true;
  }
  while (true) {
    if (!parse_member()) {
      return false;
    }
    skip_space();
    if (peek() == '}') {
      ++at_;
      return true;
    }
    if (peek() != ',') {
      return fail("',' or '}' expected", at_);
    }
    ++at_;
    skip_space();
  }
}

bool JsonLineParser::parse_member() {
  std::string_view key;
  if (peek() != '"') {
    return fail("a key in quotes expected", at_);
  }
  if (!parse_string(key, key_)) {
    return false;
  }
  skip_space();
  if (peek() != ':') {
    return fail("':' expected", at_);
  }
  ++at_;
  skip_space();
  Value* value = wanted(key);
  if (value == nullptr) {
    return peek() == '"' ? skip_string() : skip_value();
  }
  value->kind = peek() == '"' ? Kind::text : Kind::other;
  if (value->kind == Kind::other) return skip_value();
  const std::size_t begin = at_;
  const bool good = parse_string(value->text, value->unescaped);
  value->token = line_.substr(begin, at_ - begin);
  return good;
}

JsonLineParser::Value* JsonLineParser::wanted(std::string_view key) {
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    if (keys_[i] == key) {
      return &values_[i];
    }
  }
  return nullptr;
}

// The string at at_, a quote: a part of the line where it has no escapes, else `unescaped`.
bool JsonLineParser::parse_string(std::string_view& text, std::string& unescaped) {
  std::size_t begin = ++at_;
  at_ = end_of_plain(line_, at_);
  if (peek() == '"') {
    text = line_.substr(begin, at_++ - begin);
    return true;
  }
  unescaped.clear();
  while (true) {
    unescaped.append(line_, begin, at_ - begin);
    if (at_ == line_.size()) {
      return fail("a string without end", begin);
    }
    if (line_[at_] == '"') {
      ++at_;
      text = unescaped;
      return true;
    }
    if (line_[at_] != '\\') {
      return fail("a control character in a string", at_);
    }
    const JsonEscape escape = read_escape(line_, at_);
    if (escape.length == 0) {
      return fail("an invalid escape or half of a surrogate pair", at_);
    }
    append_utf8(unescaped, escape.code);
    at_ += escape.length;
    begin = at_;
    at_ = end_of_plain(line_, at_);
  }
}

bool JsonLineParser::skip_string() {
  const std::size_t begin = at_++;
  while (true) {
    at_ = end_of_plain(line_, at_);
    if (at_ == line_.size()) {
      return fail("a string without end", begin);
    }
    if (line_[at_] == '"') {
      ++at_;
      return true;
    }
    if (line_[at_] != '\\') {
      return fail("a control character in a string", at_);
    }
    const JsonEscape escape = read_escape(line_, at_);
    if (escape.length == 0) {
      return fail("an invalid escape or half of a surrogate pair", at_);
    }
    at_ += escape.length;
  }
}

// Any value. Brackets are kept on a stack of our own, so that no line can exhaust the thread's.
bool JsonLineParser::skip_value() {
  open_.clear();
  while (true) {
    skip_space();
    const bool opens = peek() == '{' || peek() == '[';
    if (opens ? !open_container() : !skip_scalar()) {
      return false;
    }
    const bool opened_and_filled = opens && at_ < line_.size() && peek() != '}' && peek() != ']';
    if (opened_and_filled) {
      if (open_.back() == '{' && !skip_member_name()) {
        return false;
      }
      continue;
    }
    if (!close_containers()) {
      return false;
    }
    if (open_.empty()) {
      return true;
    }
  }
}

bool JsonLineParser::open_container() {
  if (open_.size() + 2 > kMaxJsonDepth) {  // this one and the object of the line
    return fail(concat("nested deeper than ", kMaxJsonDepth), at_);
  }
  open_.push_back(line_[at_++]);
  skip_space();
  return true;
}

// After a value: closing brackets, then the comma before the next value, whose name is read when it
// has one.
bool JsonLineParser::close_containers() {
  while (!open_.empty()) {
    skip_space();
    const char closing = open_.back() == '{' ? '}' : ']';
    if (peek() == closing) {
      ++at_;
      open_.pop_back();
      continue;
    }
    if (peek() != ',') {
      return fail("',' or a closing bracket expected", at_);
    }
    ++at_;
    skip_space();
    return open_.back() == '[' || skip_member_name();
  }
  return true;
}

bool JsonLineParser::skip_member_name() {
  if (peek() != '"') {
    return fail("a key in quotes expected", at_);
  }
  if (!skip_string()) {
    return false;
  }
  skip_space();
  if (peek() != ':') {
    return fail("':' expected", at_);
  }
  ++at_;
  return true;
}

bool JsonLineParser::skip_scalar() {
  switch (peek()) {
    case '"':
      return skip_string();
    case 't':
      return skip_word("true");
    case 'f':
      return skip_word("false");
    case 'n':
      return skip_word("null");
    case 'N':
      return skip_word("NaN");
    case 'I':
      return skip_word("Infinity");
    default:
      return skip_number();
  }
}

bool JsonLineParser::skip_word(std::string_view word) {
  if (line_.substr(at_, word.size()) != word) {
    return fail("a value expected", at_);
  }
  at_ += word.size();
  return true;
}

bool JsonLineParser::skip_number() {
  const std::size_t begin = at_;
  const auto digits = [&] {
    const std::size_t first = at_;
    while (is_digit(peek())) {
      ++at_;
    }
    return at_ > first;
  };
  at_ += peek() == '-' ? 1 : 0;
  if (at_ > begin && peek() == 'I') {
    return skip_word("Infinity");
  }
  if (peek() == '0') {
    ++at_;
  } else if (!digits()) {
    return fail("a value expected", begin);
  }
  if (peek() == '.') {
    ++at_;
    if (!digits()) {
      return fail("digits expected after the decimal point", at_);
    }
  }
  if (peek() == 'e' || peek() == 'E') {
    ++at_;
    at_ += peek() == '+' || peek() == '-' ? 1 : 0;
    if (!digits()) {
      return fail("digits expected in the exponent", at_);
    }
  }
  return true;
}

}  // namespace bloomery
