#include "text/decontaminate/ngram_keys.h"

#include <algorithm>
#include <deque>

#include "base/hash.h"
#include "text/filter/text_parts.h"
#include "tokenizer/unicode/classes.h"
#include "tokenizer/unicode/normalize.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

bool is_word(char32_t code) {
  return (kLetter | kNumber).contains(char_class(code)) || code == '_';
}

// Where character `count` of the text begins; its size when there are fewer.
std::size_t byte_of(std::string_view text, std::int64_t count) {
  std::size_t at = 0;
  for (; at < text.size() && count > 0; --count) {
    at += static_cast<std::size_t>(utf8_at(text, at).length);
  }
  return at;
}

bool ends_sentence_here(char c) { return c == '.' || c == '!' || c == '?'; }

}  // namespace

// Lower-case words with one space between.
struct NgramKeys::Words {
  explicit Words(std::string_view text) {
    std::string lower(text);
    lowercase(lower);
    std::int64_t characters = 0;
    bool inside = false;
    for (std::size_t at = 0; at < lower.size(); ++characters) {
      const Utf8Char next = utf8_at(lower, at);
      const auto length = static_cast<std::size_t>(next.length);
      const bool word = is_word(next.code);
      if (word && !inside) {
        if (!joined.empty()) joined += ' ';
        starts.push_back(joined.size());
        positions.push_back(characters);
      }
      if (word) joined.append(lower, at, length);
      inside = word;
      at += length;
    }
  }

  std::string_view run(std::size_t first, std::size_t count) const {
    const std::size_t end =
        first + count < starts.size() ? starts[first + count] - 1 : joined.size();
    return std::string_view(joined).substr(starts[first], end - starts[first]);
  }

  std::string joined;
  std::vector<std::size_t> starts;      // in joined
  std::vector<std::int64_t> positions;  // characters of the text before each word
};

void NgramKeys::add_key(std::string key, int words) {
  const Words parts(key);
  beginnings_.insert(xxh3(parts.run(0, static_cast<std::size_t>(options_.min_ngram_size))));
  if (!numbers_.try_emplace(key, keys_.size()).second) return;
  keys_.push_back(std::move(key));
  const auto place = std::ranges::lower_bound(sizes_, words);
  if (place == sizes_.end() || *place != words) sizes_.insert(place, words);
}

void NgramKeys::add_text(std::string_view text) {
  const Words words(text);
  const auto count = static_cast<int>(words.starts.size());
  if (count < options_.min_ngram_size) return;
  const int size = std::min(count, options_.max_ngram_size);
  for (int first = 0; first + size <= count; ++first) {
    add_key(std::string(words.run(static_cast<std::size_t>(first), static_cast<std::size_t>(size))),
            size);
  }
}

void NgramKeys::remove_common(const std::vector<std::int64_t>& count) {
  NgramKeys rare(options_);
  for (std::size_t i = 0; i < keys_.size(); ++i) {
    if (count[i] >= options_.key_threshold) continue;
    const auto words = static_cast<int>(std::ranges::count(keys_[i], ' ')) + 1;
    rare.add_key(keys_[i], words);
  }
  keys_ = std::move(rare.keys_);
  sizes_ = std::move(rare.sizes_);
  numbers_ = std::move(rare.numbers_);
  beginnings_ = std::move(rare.beginnings_);
}

bool NgramKeys::matches(const Words& words, std::size_t first, int count, Hit& hit) const {
  const auto found = numbers_.find(std::string(words.run(first, static_cast<std::size_t>(count))));
  if (found == numbers_.end()) return false;
  hit = {found->second, words.positions[first]};
  return true;
}

// The first key from the left: at each word the longest first, then the others by size; at last
// shorter ones within the last words.
bool NgramKeys::find(const Words& words, Hit& hit) const {
  const auto count = static_cast<int>(words.starts.size());
  const int most = options_.max_ngram_size;
  const auto may_begin = [&](std::size_t first) {
    return beginnings_.contains(
        xxh3(words.run(first, static_cast<std::size_t>(options_.min_ngram_size))));
  };
  for (int first = 0; first + most <= count; ++first) {
    const auto at = static_cast<std::size_t>(first);
    if (!may_begin(at)) continue;
    if (matches(words, at, most, hit)) return true;
    for (const int size : sizes_) {
      if (matches(words, at, size, hit)) return true;
    }
  }
  if (count <= most) return false;
  for (const int size : sizes_) {
    for (int first = count - most; size != most && first + size <= count; ++first) {
      if (matches(words, static_cast<std::size_t>(first), size, hit)) return true;
    }
  }
  return false;
}

std::vector<std::size_t> NgramKeys::in_text(std::string_view text) const {
  std::vector<std::size_t> found;
  Hit hit;
  while (find(Words(text), hit)) {
    found.push_back(hit.key);
    const std::int64_t end = hit.begin + characters(keys_[hit.key]) + 1;
    text.remove_prefix(byte_of(text, end));
  }
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::vector<std::string> NgramKeys::pieces(std::string_view text) const {
  std::vector<std::string> kept;
  Hit hit;
  while (find(Words(text), hit)) {
    const std::int64_t side = options_.remove_char_each_side;
    std::int64_t before = hit.begin - side;
    std::size_t at = byte_of(text, before);
    while (before > 0 && !ends_sentence_here(text[at])) {
      --before;
      do --at;
      while ((text[at] & 0xC0) == 0x80);
    }
    const std::string_view left = before > 0 ? text.substr(0, at + 1) : std::string_view();
    at = byte_of(text, hit.begin + characters(keys_[hit.key]) + side);
    while (at < text.size() && !ends_sentence_here(text[at])) ++at;
    const std::string_view right = at < text.size() ? text.substr(at + 1) : std::string_view();
    if (characters(left) > options_.filter_text_char_len) kept.emplace_back(left);
    if (characters(right) <= options_.filter_text_char_len) return kept;
    if (static_cast<std::int64_t>(kept.size()) > options_.splits_count) return kept;
    text = right;
  }
  kept.emplace_back(text);
  return kept;
}

}  // namespace bloomery
