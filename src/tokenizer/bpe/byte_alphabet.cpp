#include "tokenizer/bpe/byte_alphabet.h"

#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

constexpr char32_t kFirstOther = 0x100;  // the bytes that do not print, in order, from here on
constexpr int kNumOthers = 68;

constexpr bool prints(int byte) {
  return (byte > ' ' && byte <= '~') || (byte >= 0xA1 && byte != 0xAD);
}

struct Alphabet {
  std::array<char32_t, 256> spelling{};
  std::array<char, kFirstOther + kNumOthers> byte{};
};

constexpr Alphabet kAlphabet = [] {
  Alphabet alphabet;
  char32_t other = kFirstOther;
  for (int byte = 0; byte < 256; ++byte) {
    const char32_t code = prints(byte) ? static_cast<char32_t>(byte) : other++;
    alphabet.spelling[byte] = code;
    alphabet.byte[code] = static_cast<char>(byte);
  }
  return alphabet;
}();

}  // namespace

const std::array<char32_t, 256>& byte_characters() { return kAlphabet.spelling; }

std::string spell_bytes(std::string_view bytes) {
  std::string spelling;
  spelling.reserve(bytes.size() * 2);
  for (const char byte : bytes) {
    append_utf8(spelling, kAlphabet.spelling[static_cast<unsigned char>(byte)]);
  }
  return spelling;
}

bool append_unspelled(std::string_view spelling, std::string& bytes) {
  const std::size_t before = bytes.size();
  bytes.resize(before + spelling.size());
  char* to = bytes.data() + before;
  bool known = true;
  for (std::size_t at = 0; at < spelling.size() && known;) {
    const Utf8Char next = utf8_at(spelling, at);
    known = next.code < kFirstOther ? prints(static_cast<int>(next.code))
                                    : next.code < kFirstOther + kNumOthers;
    if (known) *to++ = kAlphabet.byte[next.code];
    at += static_cast<std::size_t>(next.length);
  }
  bytes.resize(static_cast<std::size_t>(to - bytes.data()));
  return known;
}

std::optional<std::string> unspell_bytes(std::string_view spelling) {
  std::string bytes;
  return append_unspelled(spelling, bytes) ? std::optional(std::move(bytes)) : std::nullopt;
}

}  // namespace bloomery
