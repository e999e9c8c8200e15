// What a reader takes for one character: a letter with its accents, a conjunct, an emoji sequence.
#pragma once

#include <cstddef>
#include <string_view>

namespace bloomery::hf {

// The end of the extended grapheme cluster that starts at text[at], by the rules of Unicode 16 but
// those for Hangul and for flags, whose clusters are never shorter than six bytes: the only use
// here tells clusters below that from others.
std::size_t grapheme_end(std::string_view text, std::size_t at);

}  // namespace bloomery::hf
