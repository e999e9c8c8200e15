#include "text/language/language.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "base/hash.h"
#include "text/language/profiles.h"
#include "tokenizer/unicode/classes.h"
#include "tokenizer/unicode/normalize.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

constexpr std::size_t kLongestGram = 4;
// What an n-gram that a language's profile lacks counts, -4 ln p as in the profiles.
constexpr int kUnseen = 46;

// Scores of an n-gram: how much likelier it is in a language than one that its profile lacks.
struct Entry {
  std::uint16_t language, score;
};

class GramTable {
 public:
  GramTable() {
    struct Named {
      std::uint64_t hash;
      Entry entry;
    };
    std::vector<Named> all;
    for (const LanguageProfile* profile = kLanguageProfiles; profile->name != nullptr; ++profile) {
      const auto language = static_cast<std::uint16_t>(names_.size());
      names_.push_back(profile->name);
      std::string_view rest = profile->grams;
      int level = 0;
      while (!rest.empty()) {
        const std::size_t end = std::min(rest.find(' '), rest.size());
        const std::string word(rest.substr(0, end));
        rest.remove_prefix(std::min(end + 1, rest.size()));
        if (word[0] >= '0' && word[0] <= '9') {
          level = std::stoi(word);
        } else if (level < kUnseen) {
          all.push_back({xxh3(word), {language, static_cast<std::uint16_t>(kUnseen - level)}});
        }
      }
    }
    std::ranges::sort(all, {}, [](const Named& n) { return std::pair(n.hash, n.entry.language); });
    slots_.resize(kSlots);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i == 0 || all[i].hash != all[i - 1].hash) insert(all[i].hash);
      entries_.push_back(all[i].entry);
      ++last_->count;
    }
  }

  const std::vector<std::string>& names() const { return names_; }

  void add(std::string_view gram, std::vector<std::int64_t>& scores) const {
    const std::uint64_t hash = xxh3(gram);
    for (std::size_t at = hash % kSlots; slots_[at].count > 0; at = (at + 1) % kSlots) {
      if (slots_[at].hash != hash) continue;
      for (std::uint32_t i = 0; i < slots_[at].count; ++i) {
        const Entry& entry = entries_[slots_[at].first + i];
        scores[entry.language] += entry.score;
      }
      return;
    }
  }

 private:
  static constexpr std::size_t kSlots = 1 << 16;
  struct Slot {
    std::uint64_t hash = 0;
    std::uint32_t first = 0, count = 0;
  };

  void insert(std::uint64_t hash) {
    std::size_t at = hash % kSlots;
    while (slots_[at].count > 0) at = (at + 1) % kSlots;
    slots_[at] = {hash, static_cast<std::uint32_t>(entries_.size()), 0};
    last_ = &slots_[at];
  }

  std::vector<std::string> names_;
  std::vector<Entry> entries_;
  std::vector<Slot> slots_;
  Slot* last_ = nullptr;
};

const GramTable& table() {
  static const GramTable one;
  return one;
}

// The n-grams of a word with an end on both sides.
void add_word(std::string_view word, std::vector<std::int64_t>& scores) {
  std::size_t starts[kLongestGram + 1];  // of the last characters
  std::size_t count = 0;
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t end = at + static_cast<std::size_t>(utf8_at(word, at).length);
    std::copy_backward(starts, starts + kLongestGram - 1, starts + kLongestGram);
    starts[0] = at;
    count = std::min(count + 1, kLongestGram);
    for (std::size_t n = 0; n < count; ++n) {
      const std::string_view gram = word.substr(starts[n], end - starts[n]);
      if (gram != "_") table().add(gram, scores);
    }
    at = end;
  }
}

void add_part(std::string_view part, std::vector<std::int64_t>& scores) {
  std::string text(part), word = "_";
  lowercase(text);
  for (std::size_t at = 0; at <= text.size();) {
    const bool end = at == text.size();
    const Utf8Char next = end ? Utf8Char{' ', 1} : utf8_at(text, at);
    constexpr CharSet kWord = kLetter | kMark;
    if (kWord.contains(char_class(next.code))) {
      word.append(text, at, static_cast<std::size_t>(next.length));
    } else if (word.size() > 1) {
      word += '_';
      add_word(word, scores);
      word = "_";
    }
    at += static_cast<std::size_t>(next.length);
  }
}

// About `bytes` from `begin`, between characters.
std::string_view window(std::string_view text, std::size_t begin, std::size_t bytes) {
  const auto to_character = [&](std::size_t at) {
    while (at < text.size() && (text[at] & 0xC0) == 0x80) ++at;
    return std::min(at, text.size());
  };
  begin = to_character(begin);
  return text.substr(begin, to_character(begin + bytes) - begin);
}

}  // namespace

const std::vector<std::string>& known_languages() { return table().names(); }

std::string language_of(std::string_view text) {
  constexpr std::size_t kWindow = 2000;
  std::vector<std::int64_t> scores(known_languages().size());
  if (text.size() <= 3 * kWindow) {
    add_part(text, scores);
  } else {
    for (const std::size_t begin : {std::size_t{0}, text.size() / 2, text.size() - kWindow}) {
      add_part(window(text, begin, kWindow), scores);
    }
  }
  const auto best = std::ranges::max_element(scores);
  return *best == 0 ? std::string()
                    : known_languages()[static_cast<std::size_t>(best - scores.begin())];
}

}  // namespace bloomery
