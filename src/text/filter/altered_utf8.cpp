#include "text/filter/altered_utf8.h"

#include <array>
#include <cstdint>
#include <string_view>

#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

using Bytes = std::string_view;

unsigned char at(Bytes bytes, std::size_t i) {
  return i < bytes.size() ? static_cast<unsigned char>(bytes[i]) : 0;
}
bool is_between(unsigned char byte, unsigned first, unsigned last) {
  return byte >= first && byte <= last;
}
bool continues(unsigned char byte) { return is_between(byte, 0x80, 0xBF); }
// Not 85, which is an ellipsis, and not A0 itself.
bool continues_strictly(unsigned char byte) {
  return continues(byte) && byte != 0x85 && byte != 0xA0;
}

// The length of a sequence at the front that has a space for a byte A0; 0: there is none.
std::size_t altered_length(Bytes bytes) {
  const unsigned char first = at(bytes, 0), second = at(bytes, 1), third = at(bytes, 2),
                      fourth = at(bytes, 3);
  if (Bytes("\xC2\xC3\xC5\xCE\xD0\xD9").find(static_cast<char>(first)) != Bytes::npos) {
    return second == ' ' ? 2 : 0;
  }
  if ((first == 0xE2 || first == 0xE3) && second == ' ' && continues_strictly(third)) return 3;
  if (is_between(first, 0xE0, 0xE3)) return continues_strictly(second) && third == ' ' ? 3 : 0;
  if (first != 0xF0) return 0;
  const int spaces = (second == ' ') + (third == ' ') + (fourth == ' ');
  const int others = continues(second) + continues(third) + continues(fourth);
  return spaces == 1 && others == 2 ? 4 : 0;
}

// "à" as a word of its own keeps a space behind it.
bool is_grave_word(Bytes bytes) {
  if (!bytes.starts_with("\xC3 ")) return false;
  bytes.remove_prefix(2);
  for (const Bytes not_it : {" ", "quele", "quela", "quilo", "s "}) {
    if (bytes.starts_with(not_it)) return false;
  }
  return true;
}

bool is_lost(unsigned char byte) { return byte == 0x1A || byte == '?'; }
bool continues_or_1a(unsigned char byte) { return continues(byte) || byte == 0x1A; }

// The length of a pair of surrogates of which a byte was lost; 0: there is none.
std::size_t lossy_pair(Bytes bytes) {
  const bool pair = at(bytes, 0) == 0xED && is_between(at(bytes, 1), 0xA0, 0xAF) &&
                    at(bytes, 3) == 0xED && is_between(at(bytes, 4), 0xB0, 0xBF);
  const unsigned char third = at(bytes, 2), last = at(bytes, 5);
  const bool lost = (is_lost(third) && (is_lost(last) || continues(last))) ||
                    ((is_lost(third) || continues(third)) && is_lost(last));
  return pair && lost ? 6 : 0;
}

// The length of a sequence at the front in which a byte was lost; 0: there is none.
std::size_t lossy_length(Bytes bytes) {
  const unsigned char first = at(bytes, 0), second = at(bytes, 1), third = at(bytes, 2),
                      fourth = at(bytes, 3);
  if (is_between(first, 0xC2, 0xDF) && second == 0x1A) return 2;
  if (is_between(first, 0xC2, 0xC3) && second == '?') return 2;
  if (const std::size_t pair = lossy_pair(bytes); pair > 0) return pair;
  if (is_between(first, 0xE0, 0xEF)) {
    const bool lost =
        (is_lost(second) && continues_or_1a(third)) || (continues_or_1a(second) && is_lost(third));
    if (lost) return 3;
  }
  if (is_between(first, 0xF0, 0xF4)) {
    const std::array rest{second, third, fourth};
    for (std::size_t i = 0; i < 3; ++i) {
      const bool others = continues_or_1a(rest[(i + 1) % 3]) && continues_or_1a(rest[(i + 2) % 3]);
      if (is_lost(rest[i]) && others) return 4;
    }
  }
  return first == 0x1A ? 1 : 0;
}

}  // namespace

void restore_byte_a0(std::string& bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes.size();) {
    const Bytes rest = Bytes(bytes).substr(i);
    if (is_grave_word(rest)) {
      out += "\xC3\xA0 ";
      i += 2;
      continue;
    }
    const std::size_t length = altered_length(rest);
    for (const char c : rest.substr(0, length)) out += c == ' ' ? '\xA0' : c;
    if (length == 0) out += bytes[i];
    i += length == 0 ? 1 : length;
  }
  bytes = std::move(out);
}

void replace_lossy_sequences(std::string& bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes.size();) {
    const std::size_t length = bytes.size() > 0 ? lossy_length(Bytes(bytes).substr(i)) : 0;
    if (length > 0) {
      append_utf8(out, kReplacementCharacter);
    } else {
      out += bytes[i];
    }
    i += length == 0 ? 1 : length;
  }
  bytes = std::move(out);
}

void decode_variants(std::string& bytes) {
  if (bytes.find('\xED') == bytes.npos && bytes.find('\xC0') == bytes.npos) return;
  std::string out;
  for (std::size_t i = 0; i < bytes.size();) {
    const Bytes rest = Bytes(bytes).substr(i);
    const auto bits = [&](std::size_t k, unsigned mask) -> char32_t { return at(rest, k) & mask; };
    const bool pair = at(rest, 0) == 0xED && is_between(at(rest, 1), 0xA0, 0xAF) &&
                      continues(at(rest, 2)) && at(rest, 3) == 0xED &&
                      is_between(at(rest, 4), 0xB0, 0xBF) && continues(at(rest, 5));
    if (pair) {
      append_utf8(out,
                  (bits(1, 0x0F) << 16 | bits(2, 0x3F) << 10 | bits(4, 0x0F) << 6 | bits(5, 0x3F)) +
                      0x10000);
      i += 6;
    } else if (rest.starts_with("\xC0\x80")) {
      out += '\0';
      i += 2;
    } else {
      out += bytes[i++];
    }
  }
  bytes = std::move(out);
}

}  // namespace bloomery
