// U+2581, the visible stand-in for a space that begins the words of SentencePiece-like
// vocabularies.
#pragma once

#include <string_view>

namespace bloomery {

inline constexpr std::string_view kWordMark = "\xE2\x96\x81";

}  // namespace bloomery
