// A piece of text without white space, character by character.
#pragma once

#include <string_view>
#include <vector>

namespace bloomery {

// Of a WordBuffer, which must outlive it.
class WordText {
 public:
  WordText(std::string_view text, const char32_t* codes, const std::size_t* starts,
           std::size_t count)
      : text_(text), codes_(codes), starts_(starts), count_(count) {}

  bool empty() const { return count_ == 0; }
  std::size_t size() const { return count_; }
  char32_t operator[](std::size_t i) const { return codes_[i]; }
  char32_t back() const { return codes_[count_ - 1]; }
  std::string_view bytes() const { return text_.substr(starts_[0], starts_[count_] - starts_[0]); }

  WordText part(std::size_t begin, std::size_t end) const {
    return {text_, codes_ + begin, starts_ + begin, end - begin};
  }
  WordText without_first(std::size_t count) const { return part(count, count_); }
  WordText without_last(std::size_t count) const { return part(0, count_ - count); }

 private:
  std::string_view text_;
  const char32_t* codes_;
  const std::size_t* starts_;  // of each character in text_, and the end
  std::size_t count_;
};

class WordBuffer {
 public:
  // Of a text that must stay; what was read before is gone.
  WordText read(std::string_view text);

 private:
  std::vector<char32_t> codes_;
  std::vector<std::size_t> starts_;
};

// Classes of spaCy; letters without case are lower and upper.
bool is_digit(char32_t code);  // of ASCII
bool is_alpha(char32_t code);
bool is_lower(char32_t code);
bool is_upper(char32_t code);
bool is_icon(char32_t code);  // a symbol that is a word of its own

}  // namespace bloomery
