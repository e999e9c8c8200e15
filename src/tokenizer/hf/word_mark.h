// U+2581, the visible stand-in for a space that begins the words of SentencePiece-like
// vocabularies.
#pragma once

#include <string_view>

namespace bloomery::hf {

inline constexpr std::string_view kWordMark = "\xE2\x96\x81";

// The end of the word that starts at text[at]: the next mark that follows something else.
inline std::size_t marked_word_end(std::string_view text, std::size_t at) {
  while (text.substr(at).starts_with(kWordMark)) at += kWordMark.size();
  const std::size_t next = text.find(kWordMark, at);
  return next == text.npos ? text.size() : next;
}

}  // namespace bloomery::hf
