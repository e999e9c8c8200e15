#include "tokenizer/unicode/normalize.h"

#include <algorithm>

#include "tokenizer/unicode/normalize_data.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

constexpr char32_t kFirstChanged = 0xA0;  // nothing below changes in any form

bool composes(NormalForm form) { return form == NormalForm::nfc || form == NormalForm::nfkc; }

// Canonical ordering: runs of non-starters by their class, those of one class as they stand.
void order_marks(std::u32string& text) {
  const NormalizeData& data = NormalizeData::get();
  const auto is_starter = [&](char32_t code) { return data.of(code).combining == 0; };
  for (auto at = text.begin(); at != text.end();) {
    const auto begin = std::find_if_not(at, text.end(), is_starter);
    at = std::find_if(begin, text.end(), is_starter);
    std::stable_sort(begin, at, [&](char32_t a, char32_t b) {
      return data.of(a).combining < data.of(b).combining;
    });
  }
}

// Joins each starter with the characters after it that no other of their class keeps away.
void compose(std::u32string& text) {
  const NormalizeData& data = NormalizeData::get();
  std::size_t size = 0, starter = 0;
  bool has_starter = false;
  int before = 0;  // class of the last character kept after the starter
  for (const char32_t code : text) {
    const int combining = data.of(code).combining;
    const bool adjacent = has_starter && size == starter + 1;
    if (has_starter && (adjacent || before < combining)) {
      if (const char32_t joined = data.compose(text[starter], code); joined != 0) {
        text[starter] = joined;
        continue;
      }
    }
    if (combining == 0) {
      starter = size;
      has_starter = true;
    }
    before = combining;
    text[size++] = code;
  }
  text.resize(size);
}

// The start of the character before `at`.
std::size_t previous(std::string_view text, std::size_t at) {
  do {
    --at;
  } while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
  return at;
}

// The end of the part that starts with the character at `at`, up to the next stable character.
std::size_t part_end(std::string_view text, std::size_t at, std::uint8_t unstable) {
  const NormalizeData& data = NormalizeData::get();
  do {
    at += static_cast<std::size_t>(utf8_at(text, at).length);
  } while (at < text.size() && (data.of(utf8_at(text, at).code).unstable & unstable) != 0);
  return at;
}

// The first unstable character at or after `at`.
std::size_t find_unstable(std::string_view text, std::size_t at, std::uint8_t unstable) {
  const NormalizeData& data = NormalizeData::get();
  while (at < text.size()) {
    if (static_cast<unsigned char>(text[at]) < 0x80) {
      at = skip_ascii(text, at);
      while (at < text.size() && static_cast<unsigned char>(text[at]) < 0x80) ++at;
      if (at == text.size()) break;
    }
    const Utf8Char next = utf8_at(text, at);
    if (next.code >= kFirstChanged && (data.of(next.code).unstable & unstable) != 0) break;
    at += static_cast<std::size_t>(next.length);
  }
  return at;
}

void normalize_part(std::string_view part, NormalForm form, std::u32string& scratch,
                    std::string& result) {
  const NormalizeData& data = NormalizeData::get();
  const bool compatible = form == NormalForm::nfkc || form == NormalForm::nfkd;
  scratch.clear();
  for (std::size_t at = 0; at < part.size();) {
    const Utf8Char next = utf8_at(part, at);
    data.decompose(next.code, compatible, scratch);
    at += static_cast<std::size_t>(next.length);
  }
  order_marks(scratch);
  if (composes(form)) compose(scratch);
  for (const char32_t code : scratch) append_utf8(result, code);
}

}  // namespace

std::size_t normalized_prefix(std::string_view text, NormalForm form) {
  const std::size_t found = find_unstable(text, 0, unstable_in(form));
  if (found == text.size() || found == 0) return found;
  return previous(text, found);
}

void normalize(std::string& text, NormalForm form) {
  const std::uint8_t unstable = unstable_in(form);
  std::size_t found = find_unstable(text, 0, unstable);
  if (found == text.size()) return;
  std::string result;
  result.reserve(text.size() + text.size() / 8);
  std::u32string scratch;
  std::size_t done = 0;
  while (found < text.size()) {
    const std::size_t begin = found > done ? previous(text, found) : found;
    result.append(text, done, begin - done);
    done = part_end(text, found, unstable);
    normalize_part(std::string_view(text).substr(begin, done - begin), form, scratch, result);
    found = find_unstable(text, done, unstable);
  }
  result.append(text, done);
  text = std::move(result);
}

int combining_class(char32_t code) { return NormalizeData::get().of(code).combining; }

}  // namespace bloomery
