// Whether a text looks like UTF-8 that was read in another encoding: ftfy's heuristic, as a list of
// sequences of characters that nobody means.
#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "text/filter/mojibake.h"
#include "tokenizer/unicode/classes.h"

namespace bloomery {
namespace {

enum class Ascii {
  none,
  letter,
  lower,
  lower_or_stop,
  space,
  word,
  no_letter,
  letter_or_blank,
  any
};

// Characters of some kinds, and others besides.
struct Set {
  std::uint32_t kinds = 0;
  std::u32string_view others = {};
  Ascii ascii = Ascii::none;

  bool contains(char32_t code) const {
    return (kinds_of(code) & kinds) != 0 || others.find(code) != others.npos || has(code);
  }

 private:
  bool has(char32_t code) const {
    const bool lower = code >= 'a' && code <= 'z';
    const bool letter = lower || (code >= 'A' && code <= 'Z');
    switch (ascii) {
      case Ascii::none:
        return false;
      case Ascii::letter:
        return letter;
      case Ascii::lower:
        return lower;
      case Ascii::lower_or_stop:
        return lower || code == '.' || code == ',' || code == '?' || code == '!';
      case Ascii::space:  // Python's \s
        return char_class(code) == CharClass::white_space || (code >= 0x1C && code <= 0x1F);
      case Ascii::word:  // Python's \w
        return code == '_' || (kLetter | kNumber).contains(char_class(code));
      case Ascii::no_letter:
        return !letter;
      case Ascii::letter_or_blank:
        return letter || code == ' ';
      case Ascii::any:
        return code != '\n';
    }
    return false;
  }
};
using Sequence = std::vector<Set>;

constexpr std::uint32_t kAccented = kLowerAccented | kUpperAccented, kMarks = kStart | kEnd;

const std::vector<Sequence>& sequences() {
  static const Set arabic{kCommon | kCurrencySign | kBad | kNumeric | kStart, U"ŸŠ®°µ»"};
  static const std::vector<Sequence> list = {
      {{kC1}},
      {{kAccented | kBox | kMarks | kCurrencySign | kNumeric | kLaw | kBad}, {kBad}},
      {{0, {}, Ascii::letter}, {kLowerCommon | kUpperCommon}, {kBad}},
      {{kBad}, {kAccented | kBox | kMarks | kCurrencySign | kNumeric | kLaw}},
      {{kLowerAccented | kLowerCommon | kBox | kEnd | kCurrencySign | kNumeric}, {kUpperAccented}},
      {{kBox | kEnd | kCurrencySign | kNumeric}, {kLowerAccented}},
      {{kLowerAccented | kBox | kEnd}, {kCurrencySign}},
      {{0, {}, Ascii::space}, {kUpperAccented}, {kCurrencySign}},
      {{kUpperAccented | kBox}, {kNumeric | kLaw}},
      {{kAccented | kBox | kCurrencySign | kEnd}, {kStart}, {kNumeric}},
      {{kAccented | kCurrencySign | kNumeric | kBox | kLaw}, {kEnd}, {kStart}},
      {{kCurrencySign | kNumeric | kBox}, {kStart}},
      {{0, {}, Ascii::lower}, {kUpperAccented}, {kStart | kCurrencySign}},
      {{kBox}, {kKaomoji}},
      {{kAccented | kCurrencySign | kNumeric | kMarks | kLaw}, {kBox}},
      {{kBox}, {kEnd}},
      {{kAccented}, {kMarks}, {0, {}, Ascii::word}},
      {{0, U"Œœ"}, {0, {}, Ascii::no_letter}},
      {{kUpperAccented}, {0, U"°"}},
      // UTF-8 of common characters in Windows-1252 and Latin-1
      {{0, U"ÂÃÎÐ"}, {kMarks, U"€œŠš¢£Ÿž\u00A0\u00AD®©°·»–—´"}},
      {{0, U"×"}, {0, U"²³"}},
      {{0, U"ØÙ"}, arabic, {0, U"ØÙ"}, arabic},
      {{0, U"à"}, {0, U"²µ¹¼½¾"}},
      // in MacRoman
      {{0, U"√"}, {0, U"±∂†≠®™´≤≥¥µø"}},
      {{0, U"≈"}, {0, U"°¢"}},
      {{0, U"‚"}, {0, U"Ä"}, {0, U"ìîïòôúùû†°¢π"}},
      {{0, U"‚"}, {0, U"âó"}, {0, U"àä°ê"}},
      // in Windows-1251
      {{0, U"в"}, {0, U"Ђ"}},
      {{0, U"ВГРС"}, {kC1 | kBad | kMarks | kCurrencySign, U"°µ"}, {0, U"ВГРС"}},
      {{0, U"Г"},
       {0, U"ў"},
       {0, U"В"},
       {0, U"Ђ"},
       {0, U"В"},
       {0, {}, Ascii::any},
       {0, {}, Ascii::letter_or_blank}},
      // à and  that lost the second character
      {{0, U"Ã"}, {0, U"\u00A0¡"}},
      {{0, {}, Ascii::lower}, {0, U"ÃÂ"}, {0, U" "}},
      {{0, {}, Ascii::lower}, {0, {}, Ascii::space}, {0, U"ÃÂ"}, {0, U" "}},
      {{kEnd, {}, Ascii::lower_or_stop}, {0, U"Â"}, {kMarks, U" "}},
      // in Windows-1253 and -1257
      {{0, U"β"}, {0, U"€"}, {0, U"™\u00A0Ά\u00AD®°"}},
      {{0, U"ΒΓΞΟ"}, {kC1 | kBad | kMarks | kCurrencySign, U"°"}, {0, U"ΒΓΞΟ"}},
      {{0, U"ā"}, {0, U"€"}},
  };
  return list;
}

// Which sequences can have a character in first and second place, as bits: nearly all text is
// passed over with two lookups.
class Places {
 public:
  using Bits = std::uint64_t;

  Places() {
    for (char32_t code = 0; code < kListed; ++code) {
      first_[code] = bits_of(code, 0);
      second_[code] = bits_of(code, 1);
    }
  }

  Bits candidates(char32_t first, char32_t second) const {
    return (first < kListed ? first_[first] : bits_of(first, 0)) &
           (second < kListed ? second_[second] : ~Bits{0});
  }

 private:
  static constexpr char32_t kListed = 0x3001;  // up to the last white space

  // A sequence that ends before the place can have anything there.
  static Bits bits_of(char32_t code, std::size_t place) {
    if (code >= kListed && kinds_of(code) == 0) return 0;
    Bits bits = 0;
    for (std::size_t i = 0; i < sequences().size(); ++i) {
      const Sequence& sequence = sequences()[i];
      const bool can = place >= sequence.size() || sequence[place].contains(code);
      bits |= can ? Bits{1} << i : 0;
    }
    return bits;
  }

  std::array<Bits, kListed> first_, second_;
};

bool begins_with(std::u32string_view text, const Sequence& sequence) {
  if (text.size() < sequence.size()) return false;
  for (std::size_t i = 0; i < sequence.size(); ++i) {
    if (!sequence[i].contains(text[i])) return false;
  }
  return true;
}

}  // namespace

std::uint32_t kinds_of(char32_t code) {
  const auto after = std::ranges::upper_bound(kMojibakeRanges, code, {}, &MojibakeRange::first);
  if (after == kMojibakeRanges.begin() || code > std::prev(after)->last) return 0;
  return std::prev(after)->kinds;
}

bool is_bad(std::u32string_view text) {
  const bool begins = text.size() > 1 && (text[0] == U'Ã' || text[0] == U'Â') && text[1] == ' ';
  if (begins) return true;
  static const Places places;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char32_t second = at + 1 < text.size() ? text[at + 1] : 0;
    Places::Bits bits = places.candidates(text[at], second);
    for (; bits != 0; bits &= bits - 1) {
      const auto sequence = static_cast<std::size_t>(std::countr_zero(bits));
      if (begins_with(text.substr(at), sequences()[sequence])) return true;
    }
  }
  return false;
}

}  // namespace bloomery
