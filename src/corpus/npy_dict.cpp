#include "corpus/npy_dict.h"

#include <charconv>

#include "base/error.h"

namespace bloomery {
namespace {

class Parser {
 public:
  Parser(std::string_view text, const std::string& path) : text_(text), path_(path) {}

  NpyDict parse() {
    NpyDict dict;
    bool has_description = false, has_order = false, has_shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string key = quoted();
      expect(':');
      if (key == "descr" && !has_description) {
        dict.description = quoted();
        has_description = true;
      } else if (key == "fortran_order" && !has_order) {
        dict.fortran_order = boolean();
        has_order = true;
      } else if (key == "shape" && !has_shape) {
        dict.shape = numbers();
        has_shape = true;
      } else {
        fail(concat("the entry '", key, "' is unknown or there twice"));
      }
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip_space();
    if (at_ != text_.size() || !has_description || !has_order || !has_shape) {
      fail("it needs descr, fortran_order and shape, and nothing after them");
    }
    return dict;
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const {
    throw Error(concat(path_, ": its header cannot be read at byte ", at_, ": ", reason));
  }

  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) {
      ++at_;
    }
  }

  bool accept(char letter) {
    skip_space();
    if (at_ < text_.size() && text_[at_] == letter) {
      ++at_;
      return true;
    }
    return false;
  }

  void expect(char letter) {
    if (!accept(letter)) {
      fail(concat("expected '", letter, "'"));
    }
  }

  std::string quoted() {
    const char quote = accept('"') ? '"' : '\'';
    if (quote == '\'') {
      expect('\'');
    }
    const std::size_t end = text_.find(quote, at_);
    if (end == std::string_view::npos || end - at_ > kLongestText) {
      fail("a text without end");
    }
    std::string value(text_.substr(at_, end - at_));
    at_ = end + 1;
    return value;
  }

  bool boolean() {
    skip_space();
    for (const bool value : {true, false}) {
      const std::string_view word = value ? "True" : "False";
      if (text_.substr(at_).starts_with(word)) {
        at_ += word.size();
        return value;
      }
    }
    fail("expected True or False");
  }

  std::vector<std::int64_t> numbers() {
    std::vector<std::int64_t> values;
    expect('(');
    while (!accept(')')) {
      skip_space();
      std::int64_t value = -1;
      const char* const begin = text_.data() + at_;
      const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
      if (error != std::errc{} || value < 0 || values.size() == kMostDimensions) {
        fail("expected the numbers of a shape");
      }
      at_ += static_cast<std::size_t>(end - begin);
      values.push_back(value);
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return values;
  }

  static constexpr std::size_t kLongestText = 100;
  static constexpr std::size_t kMostDimensions = 32;  // NumPy's own limit

  std::string_view text_;
  const std::string& path_;
  std::size_t at_ = 0;
};

}  // namespace

NpyDict parse_npy_dict(std::string_view text, const std::string& path) {
  return Parser(text, path).parse();
}

}  // namespace bloomery
