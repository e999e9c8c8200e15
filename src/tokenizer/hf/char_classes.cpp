#include "tokenizer/hf/char_classes.h"

#include "tokenizer/unicode/char_bits.h"
#include "tokenizer/unicode/classes.h"
#include "tokenizer/unicode/properties.h"

namespace bloomery::hf {

bool is_space(char32_t code) { return char_class(code) == CharClass::white_space; }

bool is_numeric(char32_t code) {
  static const CharBits set("hf numbers");
  return set.contains(code);
}

bool is_word(char32_t code) {
  static const CharBits set("hf word");
  return set.contains(code);
}

bool is_punctuation(char32_t code) {
  static const CharBits set("hf punctuation");
  return set.contains(code);
}

bool is_combining_mark(char32_t code) {
  static const CharBits set("hf marks");
  return set.contains(code);
}

bool is_bert_accent(char32_t code) {
  static const CharBits set("bert accents");
  return set.contains(code);
}

bool is_bert_control(char32_t code) {
  static const CharBits set("bert controls");
  return set.contains(code);
}

bool is_bert_ideograph(char32_t code) {
  struct Range {
    char32_t first, last;
  };
  constexpr Range kRanges[] = {{0x4E00, 0x9FFF},   {0x3400, 0x4DBF},   {0x20000, 0x2A6DF},
                               {0x2A700, 0x2B73F}, {0x2B740, 0x2B81F}, {0x2B920, 0x2CEAF},
                               {0xF900, 0xFAFF},   {0x2F800, 0x2FA1F}};
  if (code < 0x3400) return false;
  for (const Range& range : kRanges) {
    if (code >= range.first && code <= range.last) return true;
  }
  return false;
}

}  // namespace bloomery::hf
