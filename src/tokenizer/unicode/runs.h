// Runs of characters of one kind in valid UTF-8, with ASCII letters sixteen at a time.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "tokenizer/unicode/classes.h"
#include "tokenizer/utf8.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace bloomery {

struct ClassAt {
  CharClass kind;
  int length;  // in bytes
};

inline ClassAt class_at(std::string_view text, std::size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  if (first < 0x80) {
    return {static_cast<CharClass>(detail::kClassTables.classes[0][first]), 1};
  }
  const Utf8Char character = utf8_at(text, at);
  return {char_class(character.code), character.length};
}

inline bool is_ascii_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]) < 0x80;
}

// The end of the run of characters of the set that starts at `at`.
inline std::size_t run_end(std::string_view text, std::size_t at, CharSet set) {
  while (at < text.size()) {
    const ClassAt next = class_at(text, at);
    if (!set.contains(next.kind)) break;
    at += static_cast<std::size_t>(next.length);
  }
  return at;
}

namespace detail {

inline constexpr std::size_t kLetterBlock = 16;

// How many of the sixteen bytes at `bytes` are ASCII letters before the first that is not.
inline std::size_t leading_letters(const char* bytes) {
#if defined(__SSE2__)
  const __m128i block = _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
  // Letters, in either case, become the 26 smallest signed bytes.
  const __m128i folded = _mm_or_si128(block, _mm_set1_epi8(0x20));
  const __m128i shifted = _mm_add_epi8(folded, _mm_set1_epi8(static_cast<char>(0x80 - 'a')));
  const __m128i letters = _mm_cmplt_epi8(shifted, _mm_set1_epi8(static_cast<char>(0x80 + 26)));
  const auto others = ~static_cast<std::uint32_t>(_mm_movemask_epi8(letters));
  return static_cast<std::size_t>(std::countr_zero(others | 0x10000));
#else
  std::size_t count = 0;
  while (count < kLetterBlock && static_cast<unsigned char>((bytes[count] | 0x20) - 'a') < 26) {
    ++count;
  }
  return count;
#endif
}

inline std::size_t ascii_letters_end(std::string_view text, std::size_t at) {
  while (at + kLetterBlock <= text.size()) {
    const std::size_t count = leading_letters(text.data() + at);
    at += count;
    if (count < kLetterBlock) return at;
  }
  while (at < text.size() && static_cast<unsigned char>((text[at] | 0x20) - 'a') < 26) {
    ++at;
  }
  return at;
}

}  // namespace detail

// As run_end, for sets that contain the ASCII letters and no other ASCII character.
inline std::size_t word_end(std::string_view text, std::size_t at, CharSet set) {
  for (;;) {
    at = detail::ascii_letters_end(text, at);
    if (at == text.size() || is_ascii_at(text, at)) return at;
    do {
      const Utf8Char next = utf8_at(text, at);
      if (!set.contains(char_class(next.code))) return at;
      at += static_cast<std::size_t>(next.length);
    } while (at < text.size() && !is_ascii_at(text, at));
  }
}

}  // namespace bloomery
