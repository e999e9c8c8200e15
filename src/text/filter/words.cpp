#include "text/filter/words.h"

#include <algorithm>
#include <span>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "text/filter/text_parts.h"
#include "text/filter/url_words.h"
#include "text/filter/word_tables.h"
#include "text/filter/word_text.h"

namespace bloomery {
namespace {

bool is_punctuation(char32_t code) { return std::ranges::binary_search(kPunctuation, code); }
bool is_quote(char32_t code) { return std::ranges::binary_search(kQuote, code); }
bool is_currency(char32_t code) { return std::ranges::binary_search(kCurrency, code); }
bool is_dash(char32_t code) { return code == U'—' || code == U'–'; }
// A mark that leaves either end of a word.
bool is_mark(char32_t code) {
  return is_punctuation(code) || is_quote(code) || is_dash(code) || is_icon(code);
}

// How many characters leave the front, or the back; 0: none.
std::size_t prefix_of(const WordText& word) {
  const char32_t first = word[0], second = word.size() > 1 ? word[1] : 0;
  if (first == '+') return is_digit(second) ? 0 : 1;
  if (is_mark(first) || is_currency(first) || first == U'§' || first == '%' || first == '=') {
    return 1;
  }
  if (first == '.' && second == '.') {
    std::size_t dots = 2;
    while (dots < word.size() && word[dots] == '.') ++dots;
    return dots;
  }
  for (const std::string_view dollar : {"US$", "C$", "A$"}) {
    if (word.bytes().starts_with(dollar)) return dollar.size();
  }
  return 0;
}

// A full stop behind these leaves the word.
bool parts_from_stop(const WordText& before) {
  const char32_t last = before.back();
  if (is_digit(last) || is_lower(last) || is_punctuation(last) || is_quote(last)) return true;
  constexpr auto npos = std::u32string_view::npos;
  if (std::u32string_view(U"%²-+|").find(last) != npos) return true;
  if (before.size() < 2) return false;
  const char32_t previous = before[before.size() - 2];
  if (previous == U'°' && std::u32string_view(U"FCK").find(last) != npos) return true;
  return is_upper(previous) && is_upper(last);
}

// The longest unit or currency at the end that a digit stands in front of.
std::size_t unit_of(const WordText& word) {
  static const std::vector<std::string_view> units = split_space(kUnits);
  constexpr std::size_t kLongestUnit = 8;
  const WordText end = word.part(word.size() - std::min(word.size(), kLongestUnit), word.size());
  if (end.bytes().find_first_of("0123456789") == std::string_view::npos) return 0;
  std::size_t longest = 0;
  const auto look = [&](std::string_view unit) {
    if (unit.size() >= word.bytes().size() || !word.bytes().ends_with(unit)) return;
    const auto length = static_cast<std::size_t>(characters(unit));
    if (is_digit(word[word.size() - length - 1])) longest = std::max(longest, length);
  };
  std::ranges::for_each(units, look);
  for (const std::string_view dollar : {"US$", "C$", "A$"}) look(dollar);
  if (word.size() > 1 && is_currency(word.back()) && is_digit(word[word.size() - 2])) {
    longest = std::max<std::size_t>(longest, 1);
  }
  return longest;
}

std::size_t suffix_of(const WordText& word) {
  if (word.empty()) return 0;
  const char32_t last = word.back(), previous = word.size() > 1 ? word[word.size() - 2] : 0;
  if ((last == 's' || last == 'S') && (previous == '\'' || previous == U'’')) return 2;
  if (last == U'…') return previous == U'…' ? 2 : 1;
  if (const std::size_t unit = unit_of(word); unit > 0) return unit;
  if (is_mark(last)) return 1;
  if (last == '+') return is_digit(previous) ? 1 : 0;
  if (last != '.') return 0;
  if (previous != '.') return previous != 0 && parts_from_stop(word.without_last(1)) ? 1 : 0;
  std::size_t dots = 2;
  while (dots < word.size() && word[word.size() - dots - 1] == '.') ++dots;
  return dots;
}

// How many characters at `at` divide the word there.
std::size_t infix_at(const WordText& word, std::size_t at) {
  const char32_t code = word[at];
  const char32_t before = at > 0 ? word[at - 1] : 0;
  const auto next = [&](std::size_t i) { return at + i < word.size() ? word[at + i] : 0; };
  if (code == '.' && next(1) == '.') {
    std::size_t dots = 2;
    while (next(dots) == '.') ++dots;
    return dots;
  }
  if (code == U'…' || is_icon(code)) return 1;
  const bool sign = code == '+' || code == '-' || code == '*' || code == '^';
  if (sign && is_digit(before) && (is_digit(next(1)) || next(1) == '-')) return 1;
  if (code == '.') {
    const bool divides =
        (is_lower(before) || is_quote(before)) && (is_upper(next(1)) || is_quote(next(1)));
    return divides ? 1 : 0;
  }
  if (code == ',') return is_alpha(before) && is_alpha(next(1)) ? 1 : 0;
  if (!is_alpha(before) && !is_digit(before)) return 0;
  if (code == ':' || code == '<' || code == '>' || code == '=' || code == '/') {
    return is_alpha(next(1)) ? 1 : 0;
  }
  if (code != '-' && code != '~' && !is_dash(code)) return 0;
  if (is_alpha(next(1))) return 1;
  std::size_t run = 1;  // --, --- and —— divide as well
  while (next(run) == code) ++run;
  const bool long_dash = (code == '-' && run <= 3) || (code == U'—' && run == 2);
  return long_dash && is_alpha(next(run)) ? run : 0;
}

template <class Put>
void divide_inside(const WordText& word, const Put& put) {
  std::size_t begin = 0;
  for (std::size_t at = 1; at < word.size();) {
    const std::size_t length = infix_at(word, at);
    if (length == 0) {
      ++at;
      continue;
    }
    if (at > begin) put(word.part(begin, at).bytes());
    put(word.part(at, at + length).bytes());
    begin = at += length;
  }
  if (begin < word.size()) put(word.part(begin, word.size()).bytes());
}

// So that words are looked up without a copy.
struct TextHash : std::hash<std::string_view> {
  using is_transparent = void;
};

// Special words and how they are divided.
class SpecialWords {
 public:
  SpecialWords() {
    for (const std::string_view entry : split_space(kSpecialWords)) add(entry);
  }

  // Null: it is none. Of others the places where its words end, in bytes.
  const std::vector<std::size_t>* ends(std::string_view text) const {
    if (text.size() > longest_) return nullptr;
    const auto found = ends_.find(text);
    return found == ends_.end() ? nullptr : &found->second;
  }
  bool is(const WordText& text) const { return !text.empty() && ends(text.bytes()) != nullptr; }

  template <class Visit>
  void for_each(const Visit& visit) const {
    for (const auto& [text, ends] : ends_) visit(std::string_view(text));
  }

 private:
  void add(std::string_view entry) {
    std::string text;
    std::vector<std::size_t> ends;
    for (const char c : entry) {
      if (c == '~') {
        ends.push_back(text.size());
      } else {
        text += c;
      }
    }
    ends.push_back(text.size());
    longest_ = std::max(longest_, text.size());
    ends_.emplace(std::move(text), std::move(ends));
  }

  std::unordered_map<std::string, std::vector<std::size_t>, TextHash, std::equal_to<>> ends_;
  std::size_t longest_ = 0;
};

template <class Put>
void put_special(std::string_view text, const std::vector<std::size_t>& ends, const Put& put) {
  for (std::size_t begin = 0; const std::size_t end : ends) {
    put(text.substr(begin, end - begin));
    begin = end;
  }
}

// A piece without white space into its words, front to back. Without `special` no word is special.
template <class Put>
void divide(WordText word, const SpecialWords* special, const Put& put) {
  std::vector<WordText> behind;
  const auto is_special = [&](const WordText& text) { return special && special->is(text); };
  while (!word.empty() && !is_special(word)) {
    const std::size_t front = prefix_of(word);
    const WordText inner = word.without_first(front);
    if (front > 0 && is_special(inner)) {
      put(word.part(0, front).bytes());
      word = inner;
      break;
    }
    const std::size_t back = suffix_of(inner);
    if (front == 0 && back == 0) break;
    if (back > 0) behind.push_back(word.part(word.size() - back, word.size()));
    if (back > 0 && is_special(word.without_last(back))) {
      word = word.without_last(back);
      break;
    }
    if (front > 0) put(word.part(0, front).bytes());
    word = inner.without_last(back);
  }
  if (is_special(word)) {
    put_special(word.bytes(), *special->ends(word.bytes()), put);
  } else if (is_url(word)) {
    put(word.bytes());
  } else {
    divide_inside(word, put);
  }
  for (auto part = behind.rbegin(); part != behind.rend(); ++part) put(part->bytes());
}

// Special words that marks took apart, put together again: "(:-)" of a longer piece. They are
// looked for among neighbours that can be parts of one.
class Joiner {
 public:
  using Words = std::vector<std::string_view>;

  explicit Joiner(const SpecialWords& special) : special_(special) {
    special.for_each([&](std::string_view text) {
      WordBuffer buffer;
      Words parts;
      divide(buffer.read(text), nullptr, [&](std::string_view part) { parts.push_back(part); });
      if (parts.size() < 2) return;
      keys_.insert(key(parts));
      for (const std::string_view part : parts) parts_.emplace(part);
      longest_ = std::max(longest_, parts.size());
    });
  }

  bool is_part(std::string_view word) const { return parts_.contains(word); }

  // Appends the words that the neighbours are. The longest first, of equally long ones the first;
  // what one covers is taken, even where there is a space in it, so that it is none after all.
  void append(std::span<const std::string_view> parts, Words& words) const {
    std::vector<std::size_t> ends(parts.size());  // of what is found there; 0: nothing
    std::vector<bool> taken(parts.size());
    for (std::size_t length = std::min(longest_, parts.size()); length > 1; --length) {
      for (std::size_t first = 0; first + length <= parts.size(); ++first) {
        if (!keys_.contains(key(parts.subspan(first, length)))) continue;
        if (!taken[first] && !taken[first + length - 1]) ends[first] = first + length;
        std::fill_n(taken.begin() + static_cast<std::ptrdiff_t>(first), length, true);
      }
    }
    for (std::size_t i = 0; i < parts.size();) {
      const std::size_t end = std::max(ends[i], i + 1);
      const std::string_view text(parts[i].data(), parts[end - 1].end());
      const std::vector<std::size_t>* inside = end > i + 1 ? special_.ends(text) : nullptr;
      if (inside != nullptr) {
        put_special(text, *inside, [&](std::string_view word) { words.push_back(word); });
      } else {
        words.insert(words.end(), parts.begin() + static_cast<std::ptrdiff_t>(i),
                     parts.begin() + static_cast<std::ptrdiff_t>(end));
      }
      i = end;
    }
  }

 private:
  static std::string key(std::span<const std::string_view> parts) {
    std::string text;
    for (const std::string_view part : parts) text.append(part).append(" ");
    return text;
  }

  const SpecialWords& special_;
  std::unordered_set<std::string, TextHash, std::equal_to<>> keys_, parts_;
  std::size_t longest_ = 0;
};

bool is_letters(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; });
}

}  // namespace

std::vector<std::string_view> words_of(std::string_view text) {
  static const SpecialWords special;
  static const Joiner joiner(special);
  std::vector<std::string_view> words, neighbours;
  const auto flush = [&] {
    joiner.append(neighbours, words);
    neighbours.clear();
  };
  const auto put = [&](std::string_view word) {
    if (joiner.is_part(word)) return neighbours.push_back(word);
    if (!neighbours.empty()) flush();
    words.push_back(word);
  };
  WordBuffer buffer;
  const char* end = text.data();
  for (const std::string_view piece : split_space(text)) {
    if (std::string_view(end, piece.data()) != " ") flush();
    end = piece.data() + piece.size();
    if (!is_letters(piece)) {
      divide(buffer.read(piece), &special, put);
    } else if (const auto* ends = special.ends(piece)) {
      put_special(piece, *ends, put);
    } else {
      put(piece);
    }
  }
  flush();
  return words;
}

}  // namespace bloomery
