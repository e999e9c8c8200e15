// The printable characters in which vocabulary files of byte-level tokenizers spell bytes: most of
// Latin-1 for itself, U+0100 and up for the bytes that are not printable (a space is U+0120).
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace bloomery {

// The character of each byte.
const std::array<char32_t, 256>& byte_characters();

std::string spell_bytes(std::string_view bytes);

// The bytes that `spelling` (valid UTF-8) stands for; nothing when it has a character that is not
// of the alphabet.
std::optional<std::string> unspell_bytes(std::string_view spelling);
// The same at the end of `bytes`; false, and bytes up to such a character, when it has one.
bool append_unspelled(std::string_view spelling, std::string& bytes);

}  // namespace bloomery
