#include "tokenizer/hf/char_classes.h"

#include <span>
#include <vector>

#include "tokenizer/hf/char_class_tables.h"

namespace bloomery::hf {
namespace {

// A set of characters as bits, in pages of 256 of which equal ones are not kept twice if empty.
class CharSet {
 public:
  explicit CharSet(std::span<const CharRange> ranges) : pages_(0x1100), bits_(4) {
    for (const CharRange& range : ranges) {
      for (char32_t code = range.first; code <= range.last; ++code) add(code);
    }
  }

  bool contains(char32_t code) const {
    return (bits_[pages_[code >> 8] * 4u + (code >> 6 & 3)] >> (code & 63) & 1) != 0;
  }

 private:
  void add(char32_t code) {
    std::uint16_t& page = pages_[code >> 8];
    if (page == 0) {
      page = static_cast<std::uint16_t>(bits_.size() / 4);
      bits_.resize(bits_.size() + 4);
    }
    bits_[page * 4u + (code >> 6 & 3)] |= std::uint64_t{1} << (code & 63);
  }

  std::vector<std::uint16_t> pages_;
  std::vector<std::uint64_t> bits_;  // the first page is empty
};

}  // namespace

bool is_space(char32_t code) {
  if (code < 0x80) return code == ' ' || (code >= 0x09 && code <= 0x0D);
  switch (code) {
    case 0x85:
    case 0xA0:
    case 0x1680:
    case 0x2028:
    case 0x2029:
    case 0x202F:
    case 0x205F:
    case 0x3000:
      return true;
    default:
      return code >= 0x2000 && code <= 0x200A;
  }
}

bool is_numeric(char32_t code) {
  static const CharSet set(kNumeric);
  return set.contains(code);
}

bool is_word(char32_t code) {
  static const CharSet set(kWordCharacters);
  return set.contains(code);
}

bool is_punctuation(char32_t code) {
  static const CharSet set(kPunctuation);
  return set.contains(code);
}

bool is_combining_mark(char32_t code) {
  static const CharSet set(kCombiningMarks);
  return set.contains(code);
}

bool is_bert_accent(char32_t code) {
  static const CharSet set(kBertNonspacing);
  return set.contains(code);
}

bool is_bert_control(char32_t code) {
  static const CharSet set(kBertControls);
  return set.contains(code);
}

bool is_bert_ideograph(char32_t code) {
  constexpr CharRange kRanges[] = {{0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF},
                                   {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF},
                                   {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
  if (code < 0x3400) return false;
  for (const CharRange& range : kRanges) {
    if (code >= range.first && code <= range.last) return true;
  }
  return false;
}

}  // namespace bloomery::hf
