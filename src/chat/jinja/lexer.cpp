#include "chat/jinja/lexer.h"

#include <algorithm>

#include "base/error.h"
#include "chat/jinja/string_literal.h"
#include "chat/jinja/text.h"
#include "tokenizer/utf8.h"

namespace bloomery::jinja {
namespace {

using Type = Token::Type;

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_word(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

class Lexer {
 public:
  explicit Lexer(std::string source) : source_(std::move(source)) {}

  std::vector<Token> run() {
    while (at_ < source_.size()) {
      const std::size_t tag = find_tag(at_);
      data(tag);
      if (tag == source_.size()) break;
      if (source_[tag + 1] == '#') {
        comment();
      } else if (!raw()) {
        expression(source_[tag + 1] == '{');
      }
    }
    add(Type::end, "");
    return std::move(tokens_);
  }

 private:
  bool starts(std::string_view what) const { return source_.compare(at_, what.size(), what) == 0; }
  char peek(std::size_t ahead = 0) const {
    return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0';
  }
  void add(Type type, std::string value) { tokens_.push_back({type, std::move(value), line_}); }
  void advance(std::size_t to) {
    line_ += static_cast<int>(std::count(source_.begin() + static_cast<std::ptrdiff_t>(at_),
                                         source_.begin() + static_cast<std::ptrdiff_t>(to), '\n'));
    at_ = to;
  }
  void skip_space() {
    const std::string_view rest = std::string_view(source_).substr(at_);
    advance(at_ + strip_space(rest, true, false).begin);
  }

  std::size_t find_tag(std::size_t from) const {
    for (std::size_t i = source_.find('{', from); i != std::string::npos && i + 1 < source_.size();
         i = source_.find('{', i + 1)) {
      if (source_[i + 1] == '{' || source_[i + 1] == '%' || source_[i + 1] == '#') return i;
    }
    return source_.size();
  }

  // The text up to a tag, without what the tag's sign or lstrip_blocks takes from its end; then
  // stands on the tag.
  void data(std::size_t tag) {
    const std::string_view text = std::string_view(source_).substr(at_, tag - at_);
    add_data(text, tag, tag < source_.size() && source_[tag + 1] == '{');
    advance(tag);
  }

  void add_data(std::string_view text, std::size_t tag, bool variable) {
    const char sign = tag + 2 < source_.size() ? source_[tag + 2] : '\0';
    if (tag < source_.size() && sign == '-') {
      text = text.substr(0, strip_space(text, false, true).end);
    } else if (tag < source_.size() && sign != '+' && !variable) {
      const std::size_t newline = text.rfind('\n');
      const std::size_t line = newline == std::string_view::npos ? 0 : newline + 1;
      const std::string_view last = text.substr(line);
      const bool begins_line = line > 0 || line_starting_;
      if (begins_line && strip_space(last, true, false).begin == last.size())
        text = text.substr(0, line);
    }
    if (!text.empty()) add(Type::data, std::string(text));
  }

  // Behind the end of a tag, whose sign may take the white space that follows; else trim_blocks
  // takes one newline.
  void after_tag(char sign, bool trims) {
    const std::size_t begin = at_;
    if (sign == '-') {
      skip_space();
    } else if (sign != '+' && trims && peek() == '\n') {
      advance(at_ + 1);
    }
    line_starting_ = at_ > begin && source_[at_ - 1] == '\n';
  }

  void comment() {
    const std::size_t end = source_.find("#}", at_ + 2);
    check(end != std::string::npos, "line ", line_, ": the comment is not closed by #}");
    const char sign = end > at_ + 2 ? source_[end - 1] : '\0';
    advance(end + 2);
    after_tag(sign == '-' || sign == '+' ? sign : '\0', true);
  }

  // {% NAME %} at a position: where it ends, and the sign there.
  struct PlainTag {
    std::size_t end = 0;  // 0: no such tag
    char sign = '\0';
  };
  PlainTag plain_tag(std::size_t at, std::string_view name) const {
    const auto skip = [&] {
      while (at < source_.size() && is_space(static_cast<unsigned char>(source_[at]))) ++at;
    };
    at += 2;
    if (at < source_.size() && (source_[at] == '-' || source_[at] == '+')) ++at;
    skip();
    if (source_.compare(at, name.size(), name) != 0) return {};
    at += name.size();
    skip();
    PlainTag tag;
    if (at < source_.size() && (source_[at] == '-' || source_[at] == '+')) tag.sign = source_[at++];
    tag.end = source_.compare(at, 2, "%}") == 0 ? at + 2 : 0;
    return tag;
  }

  // {% raw %} ... {% endraw %}
  bool raw() {
    const PlainTag open = source_[at_ + 1] == '%' ? plain_tag(at_, "raw") : PlainTag();
    if (open.end == 0) return false;
    advance(open.end);
    after_tag(open.sign == '-' ? '-' : '+', false);
    for (std::size_t i = source_.find("{%", at_); i != std::string::npos;
         i = source_.find("{%", i + 1)) {
      if (const PlainTag close = plain_tag(i, "endraw"); close.end != 0) {
        add_data(std::string_view(source_).substr(at_, i - at_), i, false);
        advance(close.end);
        after_tag(close.sign, true);
        return true;
      }
    }
    throw Error(concat("line ", line_, ": {% raw %} without {% endraw %}"));
  }

  void expression(bool variable) {
    const std::string_view close = variable ? "}}" : "%}";
    add(variable ? Type::variable_begin : Type::block_begin, "");
    advance(at_ + (peek(2) == '-' || peek(2) == '+' ? 3 : 2));
    std::string brackets;
    for (;;) {
      skip_space();
      check(at_ < source_.size(), "line ", line_, ": a tag is not closed by ", close);
      const bool sign = peek() == '-' || (peek() == '+' && !variable);
      if (brackets.empty() && source_.compare(at_ + (sign ? 1 : 0), 2, close) == 0) {
        const char own = sign ? peek() : '\0';
        add(variable ? Type::variable_end : Type::block_end, "");
        advance(at_ + (sign ? 3 : 2));
        return after_tag(own, !variable);
      }
      token(brackets);
    }
  }

  void token(std::string& brackets) {
    const char c = peek();
    if (c == '\'' || c == '"') return string();
    if (is_digit(c)) return number();
    if (is_word(c)) {
      std::size_t end = at_;
      while (end < source_.size() && is_word(source_[end])) ++end;
      add(Type::name, source_.substr(at_, end - at_));
      return advance(end);
    }
    for (const char* sign : {"**", "//", "==", "!=", ">=", "<=", "+", "-", "/", "*", "%", "~", "[",
                             "]",  "(",  ")",  "{",  "}",  ">",  "<", "=", ".", ":", "|", ","}) {
      if (starts(sign)) {
        balance(c, brackets);
        add(Type::sign, sign);
        return advance(at_ + add_length(sign));
      }
    }
    throw Error(concat("line ", line_, ": unexpected '", c, "'"));
  }
  static std::size_t add_length(std::string_view sign) { return sign.size(); }

  void balance(char c, std::string& brackets) const {
    if (c == '(' || c == '[' || c == '{') {
      brackets += c == '(' ? ')' : c == '[' ? ']' : '}';
    } else if (c == ')' || c == ']' || c == '}') {
      check(!brackets.empty() && brackets.back() == c, "line ", line_, ": unexpected '", c, "'");
      brackets.pop_back();
    }
  }

  void string() {
    const char quote = peek();
    std::size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    check(end < source_.size(), "line ", line_, ": a text is not closed by ", quote);
    add(Type::text, unescape(std::string_view(source_).substr(at_ + 1, end - at_ - 1)));
    advance(end + 1);
  }

  void number() {
    std::size_t end = at_;
    const auto digits = [&] {
      while (end < source_.size() && (is_digit(source_[end]) || source_[end] == '_')) ++end;
    };
    const auto digit_at = [&](std::size_t at) {
      return at < source_.size() && is_digit(source_[at]);
    };
    const bool prefixed = peek() == '0' && is_word(peek(1)) && !is_digit(peek(1)) &&
                          peek(1) != 'e' && peek(1) != 'E' && peek(1) != '_';
    Type type = Type::integer;
    if (prefixed) {
      while (end < source_.size() && is_word(source_[end])) ++end;
    } else {
      digits();
      if (end < source_.size() && source_[end] == '.' && digit_at(end + 1)) {
        type = Type::real;
        ++end;
        digits();
      }
      if (end < source_.size() && (source_[end] == 'e' || source_[end] == 'E')) {
        const std::size_t sign =
            end + 1 < source_.size() && (source_[end + 1] == '-' || source_[end + 1] == '+') ? 1
                                                                                             : 0;
        if (digit_at(end + 1 + sign)) {
          type = Type::real;
          end += 1 + sign;
          digits();
        }
      }
    }
    std::string value = source_.substr(at_, end - at_);
    value.erase(std::remove(value.begin(), value.end(), '_'), value.end());
    add(type, value);
    advance(end);
  }

  const std::string source_;
  std::size_t at_ = 0;
  int line_ = 1;
  bool line_starting_ = true;  // the last tag ended a line
  std::vector<Token> tokens_;
};

// Line ends become \n; one at the very end is dropped.
std::string with_plain_newlines(std::string_view source) {
  std::string text;
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] == '\r') {
      text += '\n';
      i += i + 1 < source.size() && source[i + 1] == '\n' ? 1 : 0;
    } else {
      text += source[i];
    }
  }
  if (!text.empty() && text.back() == '\n') text.pop_back();
  return text;
}

}  // namespace

std::vector<Token> tokenize(std::string_view source) {
  check(is_utf8(source), "the template is not valid UTF-8");
  return Lexer(with_plain_newlines(source)).run();
}

}  // namespace bloomery::jinja
