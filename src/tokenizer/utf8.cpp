#include "tokenizer/utf8.h"

#include <bit>
#include <cstring>

namespace bloomery {
namespace {

struct Scanned {
  std::size_t length;  // of the character, or of the invalid part
  bool valid;
};

// The bytes that may follow `first`: how many, and the range of the first of them, which is what
// keeps out overlong forms, surrogates and codes above U+10FFFF.
struct Tail {
  int count;
  unsigned char low = 0x80, high = 0xBF;
};

Tail tail_of(unsigned char first) {
  if (first < 0xC2 || first > 0xF4) return {-1};
  if (first < 0xE0) return {1};
  if (first < 0xF0) {
    return {2, static_cast<unsigned char>(first == 0xE0 ? 0xA0 : 0x80),
            static_cast<unsigned char>(first == 0xED ? 0x9F : 0xBF)};
  }
  return {3, static_cast<unsigned char>(first == 0xF0 ? 0x90 : 0x80),
          static_cast<unsigned char>(first == 0xF4 ? 0x8F : 0xBF)};
}

Scanned scan(std::string_view text, std::size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  if (first < 0x80) return {1, true};
  const Tail tail = tail_of(first);
  std::size_t length = 1;
  for (int i = 0; i < tail.count; ++i, ++length) {
    if (at + length == text.size()) return {length, false};
    const auto byte = static_cast<unsigned char>(text[at + length]);
    if (byte < (i == 0 ? tail.low : 0x80) || byte > (i == 0 ? tail.high : 0xBF)) {
      return {length, false};
    }
  }
  return {length, tail.count > 0};
}

}  // namespace

std::size_t skip_ascii(std::string_view text, std::size_t at) {
  std::uint64_t word = 0;
  while (at + sizeof word <= text.size()) {
    std::memcpy(&word, text.data() + at, sizeof word);
    const std::uint64_t others = word & 0x8080808080808080;
    static_assert(std::endian::native == std::endian::little);
    if (others != 0) return at + static_cast<std::size_t>(std::countr_zero(others)) / 8;
    at += sizeof word;
  }
  return at;
}

std::size_t valid_utf8_prefix(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      at = skip_ascii(text, at);
      if (at == text.size()) break;
    }
    const auto first = static_cast<unsigned char>(text[at]);
    if (first >= 0xC2 && first < 0xE0 && at + 1 < text.size() && (text[at + 1] & 0xC0) == 0x80) {
      at += 2;
      continue;
    }
    const Scanned next = scan(text, at);
    if (!next.valid) break;
    at += next.length;
  }
  return at;
}

std::string repair_utf8(std::string_view text) {
  std::string repaired;
  repaired.reserve(text.size());
  while (!text.empty()) {
    const std::size_t valid = valid_utf8_prefix(text);
    repaired.append(text.substr(0, valid));
    text.remove_prefix(valid);
    if (!text.empty()) {
      append_utf8(repaired, kReplacementCharacter);
      text.remove_prefix(scan(text, 0).length);
    }
  }
  return repaired;
}

}  // namespace bloomery
