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
  std::uint32_t bits = 0;
  int count = 0;
  for (const char letter : text) {
    const std::int8_t value = kBase64[static_cast<unsigned char>(letter)];
    if (value < 0) return false;
    bits = bits << 6 | static_cast<std::uint32_t>(value);
    count += 6;
    if (count >= 8) {
      count -= 8;
      bytes.push_back(static_cast<char>(bits >> count & 0xFF));
    }
  }
  return true;
}

}  // namespace bloomery
