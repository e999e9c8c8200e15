#include "tokenizer/token_spans.h"

#include <algorithm>
#include <string>

#include "tokenizer/unicode/normalize.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

constexpr std::size_t kWindow = 8;       // units that agree before two places are the same
constexpr std::size_t kFarthest = 4096;  // units that are left out in search of such places

// A part of a decomposed lowercase character, which has the bytes of the whole.
struct Unit {
  char32_t code;
  TextSpan bytes;
};

std::size_t character_size(std::string_view text, std::size_t at) {
  const auto first = static_cast<unsigned char>(text[at]);
  const std::size_t size = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  return valid_utf8_prefix(text.substr(at, size)) == size ? size : 0;
}

std::vector<Unit> units_of(std::string_view text) {
  constexpr char32_t kLoneByte = 0x110000;  // no character has a code from here on
  std::vector<Unit> units;
  units.reserve(text.size());
  std::string character;
  for (std::size_t at = 0; at < text.size();) {
    const auto byte = static_cast<unsigned char>(text[at]);
    if (byte < 0x80) {
      const bool upper = byte >= 'A' && byte <= 'Z';
      units.push_back({static_cast<char32_t>(upper ? byte | 0x20 : byte), {at, at + 1}});
      ++at;
      continue;
    }
    const std::size_t size = character_size(text, at);
    if (size == 0) {
      units.push_back({kLoneByte + byte, {at, at + 1}});
      ++at;
      continue;
    }
    character.assign(text.substr(at, size));
    lowercase(character);
    normalize(character, NormalForm::nfkd);
    for (std::size_t i = 0; i < character.size();) {
      const Utf8Char part = utf8_at(character, i);
      units.push_back({part.code, {at, at + size}});
      i += static_cast<std::size_t>(part.length);
    }
    at += size;
  }
  return units;
}

// Lays what tokens say beside the text: for each unit the bytes of the text that it comes from.
class Alignment {
 public:
  struct Place {
    TextSpan bytes;
    bool is_equal = false;  // the text says the same; otherwise it was changed, or added
  };

  Alignment(std::vector<Unit> said, std::vector<Unit> text)
      : said_(std::move(said)), text_(std::move(text)) {}

  // False where no way of going on is found.
  bool run() {
    std::size_t i = 0, j = 0;
    while (i < said_.size() || j < text_.size()) {
      if (i < said_.size() && j < text_.size() && said_[i].code == text_[j].code) {
        places_.push_back({text_[j].bytes, true});
        ++i;
        ++j;
        continue;
      }
      const std::optional<Skip> skip = next_agreement(i, j);
      if (!skip) return false;
      places_.insert(places_.end(), skip->said, {gap(j, skip->text), false});
      i += skip->said;
      j += skip->text;
    }
    return true;
  }

  const std::vector<Unit>& said() const { return said_; }
  const std::vector<Place>& places() const { return places_; }

 private:
  struct Skip {
    std::size_t said, text;  // units
  };

  bool agree(std::size_t i, std::size_t j) const {
    const std::size_t said_left = said_.size() - i, text_left = text_.size() - j;
    const std::size_t count = std::min({kWindow, said_left, text_left});
    if (count == 0) return said_left == text_left;
    return std::equal(said_.begin() + static_cast<std::ptrdiff_t>(i),
                      said_.begin() + static_cast<std::ptrdiff_t>(i + count),
                      text_.begin() + static_cast<std::ptrdiff_t>(j),
                      [](const Unit& a, const Unit& b) { return a.code == b.code; });
  }

  // The fewest units to leave out of both.
  std::optional<Skip> next_agreement(std::size_t i, std::size_t j) const {
    const std::size_t said_left = said_.size() - i, text_left = text_.size() - j;
    for (std::size_t units = 1; units <= std::min(kFarthest, said_left + text_left); ++units) {
      const std::size_t least = units - std::min(units, text_left);
      for (std::size_t said = least; said <= std::min(units, said_left); ++said) {
        if (agree(i + said, j + units - said)) return Skip{said, units - said};
      }
    }
    return std::nullopt;
  }

  // What stands there in the text; for what was added, the character that it was put before.
  TextSpan gap(std::size_t begin, std::size_t count) const {
    if (begin == text_.size()) return {};
    return {text_[begin].bytes.begin, text_[begin + std::max<std::size_t>(count, 1) - 1].bytes.end};
  }

  std::vector<Unit> said_, text_;
  std::vector<Place> places_;  // of each unit that is said
};

void widen(TextSpan& span, const TextSpan& by) {
  if (by.begin == by.end) return;
  span = span.begin == span.end
             ? by
             : TextSpan{std::min(span.begin, by.begin), std::max(span.end, by.end)};
}

// Tokens that say nothing, as the unknown one, have what lies between their neighbours.
void fill_silent(const std::vector<TextSpan>& said, std::size_t text_size,
                 std::vector<TextSpan>& spans) {
  std::size_t reached = 0, end = text_size;
  std::vector<std::size_t> next(spans.size());  // where the text of later tokens begins
  for (std::size_t i = spans.size(); i-- > 0;) {
    next[i] = end;
    if (spans[i].begin < spans[i].end) end = spans[i].begin;
  }
  for (std::size_t i = 0; i < spans.size(); ++i) {
    if (said[i].begin == said[i].end) {
      spans[i] = {reached, std::max(reached, next[i])};
    } else if (spans[i].begin < spans[i].end) {
      reached = std::max(reached, spans[i].end);
    }
  }
}

}  // namespace

std::optional<std::vector<TextSpan>> token_spans(const Tokenizer& tokenizer,
                                                 std::span<const TokenId> ids,
                                                 std::string_view text) {
  std::string all;
  std::vector<TextSpan> said;  // in what all tokens say
  for (const TokenId id : ids) {
    const std::size_t begin = all.size();
    all += tokenizer.surface(id);
    said.push_back({begin, all.size()});
  }
  Alignment alignment(units_of(all), units_of(text));
  if (!alignment.run()) return std::nullopt;
  const std::vector<Unit>& units = alignment.said();
  std::vector<TextSpan> spans(ids.size());
  std::size_t num_ordinary = 0, num_equal = 0;
  for (std::size_t token = 0, first = 0; token < ids.size(); ++token) {
    const bool is_special = tokenizer.is_special(ids[token]);
    while (first < units.size() && units[first].bytes.end <= said[token].begin) ++first;
    for (std::size_t i = first; i < units.size() && units[i].bytes.begin < said[token].end; ++i) {
      const Alignment::Place& place = alignment.places()[i];
      if (place.is_equal || !is_special) widen(spans[token], place.bytes);
      num_ordinary += !is_special;
      num_equal += !is_special && place.is_equal;
    }
  }
  // What little agrees in a longer text may do so by accident.
  if (num_ordinary > kWindow && 2 * num_equal < num_ordinary) return std::nullopt;
  fill_silent(said, text.size(), spans);
  return spans;
}

}  // namespace bloomery
