#include "tokenizer/hf/char_classes.h"

#include "tokenizer/hf/char_bits.h"

namespace bloomery::hf {

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
  static const CharBits set(kNumeric);
  return set.contains(code);
}

bool is_word(char32_t code) {
  static const CharBits set(kWordCharacters);
  return set.contains(code);
}

bool is_punctuation(char32_t code) {
  static const CharBits set(kPunctuation);
  return set.contains(code);
}

bool is_combining_mark(char32_t code) {
  static const CharBits set(kCombiningMarks);
  return set.contains(code);
}

bool is_bert_accent(char32_t code) {
  static const CharBits set(kBertNonspacing);
  return set.contains(code);
}

bool is_bert_control(char32_t code) {
  static const CharBits set(kBertControls);
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
