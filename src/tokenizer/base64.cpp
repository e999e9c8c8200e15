#include "tokenizer/base64.h"

#include <array>
#include <cstdint>

namespace bloomery {
namespace {

constexpr std::array<signed char, 256> kBase64 = [] {
  std::array<signed char, 256> values{};
  values.fill(-1);
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  for (std::size_t i = 0; i < kLetters.size(); ++i) {
    values[static_cast<unsigned char>(kLetters[i])] = static_cast<signed char>(i);
  }
  return values;
}();

}  // namespace

bool append_base64(std::string_view text, std::string& bytes) {
  if (text.size() % 4 != 0) return false;
  while (text.ends_with('=') && text.size() % 4 != 2) text.remove_suffix(1);
  const std::size_t before = bytes.size();
  bytes.resize(before + (text.size() / 4 + 1) * 3);
  char* to = bytes.data() + before;
  int wrong = 0;  // below 0 once some letter is none
  for (std::size_t at = 0; at < text.size(); at += 4) {
    std::uint32_t bits = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      const std::int8_t value =
          at + i < text.size() ? kBase64[static_cast<unsigned char>(text[at + i])] : std::int8_t{0};
      wrong |= value;
      bits = bits << 6 | static_cast<std::uint8_t>(value);
    }
    for (const int shift : {16, 8, 0}) *to++ = static_cast<char>(bits >> shift);
  }
  bytes.resize(before + text.size() * 3 / 4);
  return wrong >= 0;
}

}  // namespace bloomery
