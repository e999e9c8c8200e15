// Classes of characters as Hugging Face tokenizers 0.23 has them. Its parts were built with
// different versions of Unicode: spaces, numbers and word characters are those of Unicode 16,
// marks those of 11, punctuation, control characters and BERT's accents those of 8.
#pragma once

namespace bloomery::hf {

bool is_space(char32_t code);
bool is_numeric(char32_t code);      // Nd, Nl and No
bool is_word(char32_t code);         // \w of a regular expression
bool is_punctuation(char32_t code);  // and every ASCII character that is neither letter nor digit
bool is_combining_mark(char32_t code);  // what StripAccents removes
bool is_bert_accent(char32_t code);
bool is_bert_control(char32_t code);  // what clean_text removes, U+0000 and U+FFFD included
bool is_bert_ideograph(char32_t code);

}  // namespace bloomery::hf
