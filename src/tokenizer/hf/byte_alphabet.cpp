#include "tokenizer/hf/byte_alphabet.h"

#include "tokenizer/utf8.h"

namespace bloomery::hf {
namespace {

constexpr char32_t kFirstStandIn = 0x100;  // of the bytes that have no printable character

std::array<char32_t, 256> make_characters() {
  std::array<char32_t, 256> characters{};
  char32_t stand_in = kFirstStandIn;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool printable = (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
    characters[byte] = printable ? byte : stand_in++;
  }
  return characters;
}

std::array<std::int16_t, 0x144> make_bytes() {
  std::array<std::int16_t, 0x144> bytes{};
  bytes.fill(-1);
  for (std::int16_t byte = 0; byte < 256; ++byte) {
    bytes[byte_characters()[static_cast<std::size_t>(byte)]] = byte;
  }
  return bytes;
}

}  // namespace

const std::array<char32_t, 256>& byte_characters() {
  static const std::array<char32_t, 256> characters = make_characters();
  return characters;
}

void append_spelled(std::string_view bytes, std::string& result) {
  const std::array<char32_t, 256>& characters = byte_characters();
  for (const char byte : bytes) append_utf8(result, characters[static_cast<unsigned char>(byte)]);
}

std::optional<std::string> spelled_bytes(std::string_view token) {
  static const std::array<std::int16_t, 0x144> bytes = make_bytes();
  std::string result;
  result.reserve(token.size());
  for (std::size_t at = 0; at < token.size();) {
    const Utf8Char next = utf8_at(token, at);
    if (next.code >= bytes.size() || bytes[next.code] < 0) return std::nullopt;
    result.push_back(static_cast<char>(bytes[next.code]));
    at += static_cast<std::size_t>(next.length);
  }
  return result;
}

}  // namespace bloomery::hf
