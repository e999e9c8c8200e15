// A text whose bytes know where they come from. Marks go with the bytes through every operation of
// a template, so that the end result says which of its bytes a user wrote.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bloomery::jinja {

// Bits of a byte's mark.
inline constexpr char kFromInput = 1;  // of a message or a tool: never a special token
inline constexpr char kGenerated = 2;  // inside {% generation %}: what a model should learn to say

class Text {
 public:
  Text() = default;
  explicit Text(std::string bytes, char mark = 0) : bytes_(std::move(bytes)) {
    if (mark != 0) marks_.assign(bytes_.size(), mark);
  }

  const std::string& bytes() const { return bytes_; }
  std::size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  char mark(std::size_t at) const { return marks_.empty() ? '\0' : marks_[at]; }

  void append(const Text& text) { append(text, 0, text.size()); }
  void append(const Text& text, std::size_t begin, std::size_t end);  // some of its bytes
  void append(std::string_view bytes, char mark = 0);
  void add_mark(char mark);  // to all bytes
  Text part(std::size_t begin, std::size_t end) const;

  // Python's Markup, which `safe` and `escape` make: + escapes what is added to it.
  bool markup() const { return markup_; }
  Text as_markup(bool markup = true) const {
    Text text = *this;
    text.markup_ = markup;
    return text;
  }

 private:
  std::string bytes_;
  std::string marks_;  // of each byte; empty: none has any
  bool markup_ = false;
};

// Python's idea of white space in a text, by characters.
bool is_space(char32_t code);
std::size_t count_characters(std::string_view text);
// The bounds of a text without white space, or without characters of a set, at its ends.
struct Bounds {
  std::size_t begin, end;
};
Bounds strip_space(std::string_view text, bool left = true, bool right = true);
Bounds strip_characters(std::string_view text, std::string_view characters, bool left, bool right);

}  // namespace bloomery::jinja
