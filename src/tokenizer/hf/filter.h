// Changes of a text one character at a time, and its white space at either end.
#pragma once

#include <string>
#include <string_view>

#include "tokenizer/hf/normalizer.h"
#include "tokenizer/utf8.h"

namespace bloomery::hf {

inline constexpr char32_t kRemoved = 0xFFFFFFFF;

// Replaces each character by what `changed` makes of it; kRemoved drops it.
template <class Function>
void filter(Stretch& stretch, const Function& changed) {
  std::string& text = stretch.text;
  std::string result;
  bool rewritten = false;
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char next = utf8_at(text, at);
    const char32_t code = changed(next.code);
    if (code != next.code && !rewritten) {
      result.reserve(text.size());
      result.assign(text, 0, at);
      rewritten = true;
    }
    if (code == kRemoved) {
      if (result.empty()) stretch.at_start = false;
    } else if (rewritten) {
      append_utf8(result, code);
    }
    at += static_cast<std::size_t>(next.length);
  }
  if (rewritten) text = std::move(result);
}

// The end of the white space at the start of the text.
std::size_t space_end(std::string_view text);
// The start of the white space at the end of the text.
std::size_t space_begin(std::string_view text);

}  // namespace bloomery::hf
