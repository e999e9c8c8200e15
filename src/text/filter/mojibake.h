// UTF-8 that was read in another encoding, recognised and undone as ftfy does.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "text/filter/mojibake_tables.h"

namespace bloomery {

std::uint32_t kinds_of(char32_t code);  // of Mojibake, or'ed

// Some sequence of characters is one that nobody means.
bool is_bad(std::u32string_view text);

// Undone as often as it was done; the text itself when it is not broken.
std::u32string fix_encoding(std::u32string text);

// U+0080 to U+009F as Windows-1252 has these bytes; the five that have no meaning there stay.
char32_t windows_1252(char32_t control);

std::u32string decode_utf8(std::string_view text);
std::string encode_utf8(std::u32string_view text);

}  // namespace bloomery
