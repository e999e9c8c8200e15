// The printable characters in which byte-level vocabularies spell bytes.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>

namespace bloomery::hf {

// The character that spells each byte.
const std::array<char32_t, 256>& byte_characters();

// Appends the spelling of the bytes.
void append_spelled(std::string_view bytes, std::string& result);

// The bytes that a token spells; nothing when one of its characters spells no byte.
std::optional<std::string> spelled_bytes(std::string_view token);

}  // namespace bloomery::hf
