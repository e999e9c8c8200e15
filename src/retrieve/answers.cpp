#include "retrieve/answers.h"

#include <algorithm>
#include <charconv>

#include "base/error.h"
#include "tokenizer/unicode/classes.h"
#include "tokenizer/unicode/normalize.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

// Of a Python list of strings.
class ListParser {
 public:
  ListParser(std::string_view text, const std::string& place) : text_(text), place_(place) {}

  std::vector<std::string> parse() {
    std::vector<std::string> strings;
    expect('[');
    while (next() != ']') {
      strings.push_back(string());
      if (next() != ']') {
        expect(',');
      }
    }
    expect(']');
    require(next() == '\0');
    return strings;
  }

 private:
  char next() {  // past white space; 0 at the end
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n')) {
      ++at_;
    }
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  void require(bool good) const {
    check(good, place_, ": '", text_, "' is no list of answers; it must look like ['one', 'two']");
  }
  void expect(char wanted) {
    require(next() == wanted);
    ++at_;
  }

  std::string string() {
    const char quote = next();
    require(quote == '\'' || quote == '"');
    std::string value;
    for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_) {
      if (text_[at_] == '\\') {
        escape(value);
      } else {
        value.push_back(text_[at_]);
      }
    }
    require(at_ < text_.size());
    ++at_;
    return value;
  }

  void escape(std::string& value) {
    require(++at_ < text_.size());
    static constexpr std::string_view kNames = "ntr0abfv", kMeanings{"\n\t\r\0\a\b\f\v", 8};
    const char kind = text_[at_];
    const std::size_t digits = kind == 'x' ? 2 : kind == 'u' ? 4 : kind == 'U' ? 8 : 0;
    if (digits == 0) {
      const std::size_t found = kNames.find(kind);
      value.push_back(found == kNames.npos ? kind : kMeanings[found]);
      return;
    }
    require(at_ + digits < text_.size());
    std::uint32_t code = 0;
    const char* const first = text_.data() + at_ + 1;
    const auto [end, error] = std::from_chars(first, first + digits, code, 16);
    require(end == first + digits && code <= 0x10FFFF && (code < 0xD800 || code > 0xDFFF));
    append_utf8(value, static_cast<char32_t>(code));
    at_ += digits;
  }

  std::string_view text_;
  const std::string& place_;
  std::size_t at_ = 0;
};

}  // namespace

std::vector<std::string> answer_words(std::string_view text) {
  constexpr CharSet kWord = kLetter | kNumber | kMark;
  constexpr CharSet kUnseen(CharClass::other, CharClass::white_space);
  std::string plain(text);
  normalize(plain, NormalForm::nfd);
  std::vector<std::string> words;
  bool in_word = false;
  for (std::size_t at = 0; at < plain.size();) {
    const auto [code, length] = utf8_at(plain, at);
    const CharClass kind = char_class(code);
    if (kWord.contains(kind) && in_word) {
      words.back().append(plain, at, static_cast<std::size_t>(length));
    } else if (!kUnseen.contains(kind)) {
      words.emplace_back(plain, at, static_cast<std::size_t>(length));
    }
    in_word = kWord.contains(kind);
    at += static_cast<std::size_t>(length);
  }
  std::ranges::for_each(words, lowercase);
  return words;
}

bool has_answer(std::string_view text, const std::vector<std::vector<std::string>>& answers) {
  const std::vector<std::string> words = answer_words(text);
  return std::ranges::any_of(answers, [&](const std::vector<std::string>& answer) {
    return answer.empty() || !std::ranges::search(words, answer).empty();
  });
}

std::vector<std::string> python_list(std::string_view text, const std::string& place) {
  return ListParser(text, place).parse();
}

}  // namespace bloomery
