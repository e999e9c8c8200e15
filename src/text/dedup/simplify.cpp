#include "text/dedup/simplify.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "tokenizer/hf/char_classes.h"
#include "tokenizer/unicode/classes.h"
#include "tokenizer/unicode/normalize.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

enum : unsigned char { kSeparator = 0, kDigit = 1 };  // any other entry is the lower-case letter

constexpr std::array<unsigned char, 128> make_ascii() {
  std::array<unsigned char, 128> table{};
  for (unsigned char c = 0; c < 26; ++c) {
    table['a' + c] = table['A' + c] = static_cast<unsigned char>('a' + c);
  }
  for (unsigned char c = '0'; c <= '9'; ++c) table[c] = kDigit;
  return table;
}
constexpr auto kAscii = make_ascii();

constexpr std::u32string_view kPunctuation =
    U"«´»–—’“”„…∶━►、。〈〉《》「」【】！％（），．：；？～";  // beyond ASCII, sorted

bool separates(char32_t code) {
  return code < 0xA0 || char_class(code) == CharClass::white_space ||
         std::ranges::binary_search(kPunctuation, code);
}

bool is_decimal_point(char32_t code) {
  return code == '.' || code == ',' || code == 0x60C || code == 0x66B ||
         (code >= 0x2396 && code <= 0x2398);
}

std::size_t digits_end(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    const Utf8Char next = utf8_at(text, at);
    if (char_class(next.code) != CharClass::decimal) break;
    at += static_cast<std::size_t>(next.length);
  }
  return at;
}

bool is_cased(char32_t code) {
  constexpr CharSet kCased(CharClass::uppercase, CharClass::lowercase, CharClass::titlecase);
  return kCased.contains(char_class(code));
}

// Characters that do not part a word from what follows, as to the case of letters.
bool is_case_ignorable(char32_t code) {
  constexpr std::u32string_view kOthers =
      U"'.:^`\u00A8\u00AD\u00AF\u00B4\u00B7\u00B8\u2018\u2019\u2024\u2027";
  constexpr CharSet kIgnorable(CharClass::mark, CharClass::modifier_letter);
  return kIgnorable.contains(char_class(code)) || kOthers.find(code) != kOthers.npos ||
         (code >= 0x200B && code <= 0x200F);
}

// Whether the capital sigma there ends a word, where its small letter is another one than within.
bool is_final_sigma(std::string_view text, std::size_t at) {
  std::size_t before = at;
  bool after_letter = false;
  while (before > 0 && !after_letter) {
    do --before;
    while ((text[before] & 0xC0) == 0x80);
    const char32_t code = utf8_at(text, before).code;
    if (is_case_ignorable(code)) continue;
    after_letter = is_cased(code);
    if (!after_letter) return false;
  }
  for (std::size_t next = at + 2; after_letter && next < text.size();) {
    const Utf8Char c = utf8_at(text, next);
    if (!is_case_ignorable(c.code)) return !is_cased(c.code);
    next += static_cast<std::size_t>(c.length);
  }
  return after_letter;
}

}  // namespace

void TextSimplifier::append(std::string_view bytes) {
  if (used_ + bytes.size() > out_.size()) out_.resize(2 * (used_ + bytes.size()));
  std::memcpy(out_.data() + used_, bytes.data(), bytes.size());
  used_ += bytes.size();
}

// The end of digits, with a decimal point and digits after it if there are any.
std::size_t TextSimplifier::number_end(std::string_view text, std::size_t at) const {
  at = digits_end(text, at);
  if (at == text.size()) return at;
  const Utf8Char point = utf8_at(text, at);
  if (!is_decimal_point(point.code)) return at;
  const std::size_t fraction = at + static_cast<std::size_t>(point.length);
  const std::size_t end = digits_end(text, fraction);
  return end > fraction ? end : at;
}

void TextSimplifier::simplify_word() {
  word_.assign(out_, begin_, used_ - begin_);
  lowercase(word_);
  normalize(word_, NormalForm::nfd);
  plain_.clear();
  for (std::size_t at = 0; at < word_.size();) {
    const Utf8Char next = utf8_at(word_, at);
    if (!hf::is_bert_accent(next.code)) {
      plain_.append(word_, at, static_cast<std::size_t>(next.length));
    }
    at += static_cast<std::size_t>(next.length);
  }
  used_ = begin_;
  append(plain_);
}

void TextSimplifier::end_word() {
  if (beyond_ascii_) simplify_word();
  beyond_ascii_ = false;
  if (used_ == begin_) return;
  words_.push_back(begin_);
  append(" ");
  begin_ = used_;
}

std::string_view TextSimplifier::simplify(std::string_view text) {
  words_.clear();
  used_ = begin_ = 0;
  if (out_.size() < text.size() + 1) out_.resize(text.size() + 1);
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte < 0x80 && kAscii[byte] > kDigit) {
      if (used_ == out_.size()) out_.resize(2 * used_);
      out_[used_++] = static_cast<char>(kAscii[byte]);
      ++at;
      continue;
    }
    const Utf8Char next = utf8_at(text, at);
    if (char_class(next.code) == CharClass::decimal) {
      append("0");
      at = number_end(text, at);
      continue;
    }
    constexpr char32_t kCapitalSigma = 0x3A3;
    if (separates(next.code)) {
      end_word();
    } else if (next.code == kCapitalSigma && is_final_sigma(text, at)) {
      append("\u03C2");
      beyond_ascii_ = true;
    } else {
      append(text.substr(at, static_cast<std::size_t>(next.length)));
      beyond_ascii_ = true;
    }
    at += static_cast<std::size_t>(next.length);
  }
  end_word();
  if (used_ > 0) --used_;  // the last space
  return {out_.data(), used_};
}

}  // namespace bloomery
