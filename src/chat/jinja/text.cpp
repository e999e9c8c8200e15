#include "chat/jinja/text.h"

#include "tokenizer/utf8.h"

namespace bloomery::jinja {

void Text::append(const Text& text, std::size_t begin, std::size_t end) {
  if (!text.marks_.empty() || !marks_.empty()) {
    marks_.resize(bytes_.size(), '\0');
    if (text.marks_.empty()) {
      marks_.append(end - begin, '\0');
    } else {
      marks_.append(text.marks_, begin, end - begin);
    }
  }
  bytes_.append(text.bytes_, begin, end - begin);
}

void Text::append(std::string_view bytes, char mark) {
  if (mark != 0 || !marks_.empty()) {
    marks_.resize(bytes_.size(), '\0');
    marks_.append(bytes.size(), mark);
  }
  bytes_.append(bytes);
}

void Text::add_mark(char mark) {
  marks_.resize(bytes_.size(), '\0');
  for (char& own : marks_) own = static_cast<char>(own | mark);
}

Text Text::part(std::size_t begin, std::size_t end) const {
  Text part;
  part.append(*this, begin, end);
  part.markup_ = markup_;
  return part;
}

bool is_space(char32_t code) {
  return (code >= 9 && code <= 13) || (code >= 28 && code <= 32) || code == 0x85 || code == 0xA0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 ||
         code == 0x202F || code == 0x205F || code == 0x3000;
}

std::size_t count_characters(std::string_view text) {
  std::size_t count = 0;
  for (const char byte : text) count += (byte & 0xC0) != 0x80;
  return count;
}

template <class Drop>
Bounds stripped(std::string_view text, bool left, bool right, const Drop& drop) {
  Bounds bounds{0, text.size()};
  while (left && bounds.begin < bounds.end) {
    const Utf8Char first = utf8_at(text, bounds.begin);
    if (!drop(first.code)) break;
    bounds.begin += static_cast<std::size_t>(first.length);
  }
  while (right && bounds.begin < bounds.end) {
    std::size_t last = bounds.end - 1;
    while (last > bounds.begin && (text[last] & 0xC0) == 0x80) --last;
    if (!drop(utf8_at(text, last).code)) break;
    bounds.end = last;
  }
  return bounds;
}

Bounds strip_space(std::string_view text, bool left, bool right) {
  return stripped(text, left, right, is_space);
}

Bounds strip_characters(std::string_view text, std::string_view characters, bool left, bool right) {
  const auto in_set = [&](char32_t code) {
    std::string character;
    append_utf8(character, code);
    return characters.find(character) != std::string_view::npos;
  };
  return stripped(text, left, right, in_set);
}

}  // namespace bloomery::jinja
