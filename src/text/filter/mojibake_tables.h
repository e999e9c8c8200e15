// What ftfy knows of broken text (tools/repair_tables.py).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace bloomery {

// Kinds of characters that UTF-8 becomes in other encodings. A character may be of several.
enum Mojibake : std::uint32_t {
  kCommon = 1 << 0,
  kC1 = 1 << 1,  // control characters from U+0080 on
  kBad = 1 << 2,
  kLaw = 1 << 3,
  kCurrencySign = 1 << 4,
  kStart = 1 << 5,  // punctuation
  kEnd = 1 << 6,
  kNumeric = 1 << 7,
  kKaomoji = 1 << 8,
  kUpperAccented = 1 << 9,
  kLowerAccented = 1 << 10,
  kUpperCommon = 1 << 11,
  kLowerCommon = 1 << 12,
  kBox = 1 << 13,
  kFirstOf2 = 1 << 14,  // of a sequence of UTF-8
  kFirstOf3 = 1 << 15,
  kFirstOf4 = 1 << 16,
  kContinuation = 1 << 17,
  kContinuationStrict = 1 << 18,
};

struct MojibakeRange {
  char32_t first, last;
  std::uint32_t kinds;
};
extern const std::span<const MojibakeRange> kMojibakeRanges;  // ascending

struct SingleByteEncoding {
  std::string_view name;
  bool sloppy;          // byte 0x1A stands for U+FFFD
  char16_t codes[128];  // of bytes 0x80 to 0xFF
};
extern const SingleByteEncoding kEncodings[10];  // in the order in which they are tried

}  // namespace bloomery
