// U+2581, the visible stand-in for a space that begins the words of SentencePiece-like
// vocabularies.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace bloomery {

inline constexpr std::string_view kWordMark = "\xE2\x96\x81";

// Like text.substr(at).starts_with(kWordMark), without a call for three bytes.
inline bool has_word_mark(std::string_view text, std::size_t at) {
  return at + kWordMark.size() <= text.size() && text[at] == kWordMark[0] &&
         text[at + 1] == kWordMark[1] && text[at + 2] == kWordMark[2];
}

// Appends the text, `from` replaced by `to`. Without branches on bytes: spaces are where one least
// expects them.
inline void append_replacing(std::string_view text, char from, std::string_view to,
                             std::string& result) {
  constexpr std::size_t kRun = 256, kLongest = 4;
  if ((to.size() == 1 && to[0] == from) || text.find(from) == text.npos) {
    result += text;
    return;
  }
  if (to.size() > kLongest) {
    for (const char byte : text) byte == from ? result += to : result += byte;
    return;
  }
  std::uint32_t replacement = 0;
  std::copy(to.begin(), to.end(), reinterpret_cast<char*>(&replacement));
  char run[kRun * kLongest];
  for (; !text.empty(); text.remove_prefix(std::min(kRun, text.size()))) {
    char* end = run;
    for (const char byte : text.substr(0, kRun)) {
      const bool found = byte == from;
      const std::uint32_t written = found ? replacement : static_cast<unsigned char>(byte);
      std::memcpy(end, &written, sizeof written);
      end += found ? to.size() : 1;
    }
    result.append(run, end);
  }
}

}  // namespace bloomery
