// The classes of characters that split patterns tell apart: \p{L}, \p{N}, \p{M}, \s and their
// parts.
#pragma once

#include <cstdint>

namespace bloomery {

// The Unicode version of these tables: the one that Hugging Face tokenizers 0.23 and tiktoken 0.14
// match in patterns (tools/unicode_tables.py reads the classes from them).
inline constexpr char kPatternUnicodeVersion[] = "16.0.0";

// Every character has one. White_Space (\s) takes precedence over the general category, of which
// only control characters and separators are white space.
enum class CharClass : std::uint8_t {
  other,  // controls, formats, private use, unassigned
  uppercase,
  lowercase,
  titlecase,
  modifier_letter,
  other_letter,
  mark,
  decimal,       // Nd
  other_number,  // Nl and No
  punctuation,
  symbol,
  white_space,
};

// A set of classes, so that a test for several is one shift.
class CharSet {
 public:
  template <class... Classes>
  constexpr explicit CharSet(Classes... classes)
      : bits_((std::uint32_t{0} | ... | (std::uint32_t{1} << static_cast<unsigned>(classes)))) {}

  constexpr bool contains(CharClass c) const {
    return (bits_ >> static_cast<unsigned>(c) & 1) != 0;
  }

  friend constexpr CharSet operator|(CharSet a, CharSet b) { return from(a.bits_ | b.bits_); }
  constexpr CharSet operator~() const { return from(~bits_); }

 private:
  static constexpr CharSet from(std::uint32_t bits) {
    CharSet set;
    set.bits_ = bits;
    return set;
  }
  std::uint32_t bits_;
};

inline constexpr CharSet kLetter(CharClass::uppercase, CharClass::lowercase, CharClass::titlecase,
                                 CharClass::modifier_letter, CharClass::other_letter);
inline constexpr CharSet kNumber(CharClass::decimal, CharClass::other_number);
inline constexpr CharSet kMark(CharClass::mark);
inline constexpr CharSet kWhiteSpace(CharClass::white_space);

namespace detail {
// Two stages: code / 128 names a block, the block has the classes. ASCII is the first.
struct ClassTables {
  std::uint8_t block[0x110000 / 128];
  std::uint8_t classes[256][128];
};
extern const ClassTables kClassTables;
}  // namespace detail

// `code` must be at most U+10FFFF.
inline CharClass char_class(char32_t code) {
  const detail::ClassTables& tables = detail::kClassTables;
  return static_cast<CharClass>(tables.classes[tables.block[code >> 7]][code & 127]);
}

}  // namespace bloomery
