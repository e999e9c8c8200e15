#include "tokenizer/wordpiece/bert_text.h"

#include "tokenizer/hf/char_classes.h"
#include "tokenizer/unicode/normalize.h"

namespace bloomery {
namespace {

template <class Change>
void for_each_character(std::string& text, Change change) {
  std::string result;
  result.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char next = utf8_at(text, at);
    change(next.code, result);
    at += static_cast<std::size_t>(next.length);
  }
  text = std::move(result);
}

void clean(std::string& text) {
  for_each_character(text, [](char32_t code, std::string& result) {
    if (!hf::is_bert_control(code)) append_utf8(result, hf::is_space(code) ? U' ' : code);
  });
}

void set_ideographs_apart(std::string& text) {
  for_each_character(text, [](char32_t code, std::string& result) {
    const bool apart = hf::is_bert_ideograph(code);
    if (apart) result += ' ';
    append_utf8(result, code);
    if (apart) result += ' ';
  });
}

void strip_accents(std::string& text) {
  normalize(text, NormalForm::nfd);
  for_each_character(text, [](char32_t code, std::string& result) {
    if (!hf::is_bert_accent(code)) append_utf8(result, code);
  });
}

// Whether decomposing leaves a mark that ordering could move past another.
bool keeps_mark(char32_t code) {
  std::string text;
  append_utf8(text, code);
  normalize(text, NormalForm::nfd);
  for (std::size_t at = 0; at < text.size();) {
    const Utf8Char next = utf8_at(text, at);
    if (combining_class(next.code) != 0 && !hf::is_bert_accent(next.code)) return true;
    at += static_cast<std::size_t>(next.length);
  }
  return false;
}

constexpr bool is_surrogate(char32_t code) { return code >= 0xD800 && code < 0xE000; }

}  // namespace

bool is_bert_space(char32_t code) { return hf::is_space(code); }
bool is_bert_punctuation(char32_t code) { return hf::is_punctuation(code); }

void bert_normalize(std::string& text, const BertTextOptions& options) {
  if (options.clean_text) clean(text);
  if (options.set_ideographs_apart) set_ideographs_apart(text);
  if (options.strip_accents) strip_accents(text);
  if (options.lowercase) lowercase(text);
}

BertWordSplitter::BertWordSplitter(const BertTextOptions& options) : options_(options) {
  std::string normalized;
  for (char32_t code = 0; code < 128; ++code) {
    ascii_kinds_[code] = classify(code, normalized);
    ascii_[code] = normalized.empty() ? '\0' : normalized[0];
    if (ascii_kinds_[code] == Kind::change) ascii_kinds_[code] = Kind::keep;
  }
}

BertWordSplitter::Kind BertWordSplitter::classify(char32_t code, std::string& normalized) const {
  std::string original;
  append_utf8(original, code);
  normalized = original;
  bert_normalize(normalized, options_);
  if (options_.strip_accents && keeps_mark(code)) return Kind::special;
  bool spaces = false, punctuation = false, others = false;
  for (std::size_t at = 0; at < normalized.size();) {
    const Utf8Char next = utf8_at(normalized, at);
    (hf::is_space(next.code)         ? spaces
     : hf::is_punctuation(next.code) ? punctuation
                                     : others) = true;
    at += static_cast<std::size_t>(next.length);
  }
  if (normalized.empty()) return Kind::drop;
  if (!punctuation && !others) return Kind::space;
  if (punctuation && !spaces && !others && normalized == original) return Kind::alone;
  if (normalized == ' ' + original + ' ') return Kind::alone;
  if (spaces || punctuation) return Kind::special;
  return normalized == original ? Kind::keep : Kind::change;
}

const BertWordSplitter::Page& BertWordSplitter::make_page(char32_t number) {
  auto page = std::make_unique<Page>();
  std::string normalized;
  for (char32_t low = 0; low < 256; ++low) {
    const char32_t code = number << 8 | low;
    page->kinds[low] = is_surrogate(code) ? Kind::drop : classify(code, normalized);
    if (page->kinds[low] == Kind::change) {
      page->changed[low] = static_cast<std::uint32_t>(changed_.size());
      changed_.push_back(normalized);
    }
  }
  return *(pages_[number] = std::move(page));
}

}  // namespace bloomery
