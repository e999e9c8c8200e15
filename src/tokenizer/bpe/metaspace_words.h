// Texts in which U+2581 stands for spaces: cut into words where merging cannot reach across, and
// each word looked up among those that were encoded before.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "tokenizer/bpe/id_output.h"
#include "tokenizer/bpe/word_cache.h"
#include "tokenizer/utf8.h"
#include "tokenizer/word_mark.h"

namespace bloomery {

// Where such a text may be cut: between two characters whose ends never meet where tokens join.
// The ends are bytes, so that few characters take each other's part.
class WordBorders {
 public:
  // Two texts may join.
  void join(std::string_view left, std::string_view right) {
    meets_[last_of(left) << 8 | ends_at(right, 0).first] = true;
  }
  // All that follow one another in the text may.
  void join_inside(std::string_view text) {
    std::size_t last = 0;
    for (std::size_t at = 0; at < text.size();) {
      const Ends next = ends_at(text, at);
      if (at > 0) meets_[last << 8 | next.first] = true;
      last = next.last;
      at += next.length;
    }
  }
  void cut_nowhere() { meets_.fill(true); }
  void cut_before_marks_only() {
    meets_.fill(true);
    for (std::size_t last = 0; last < kMark; ++last) meets_[last << 8 | kMark] = false;
  }

  // A space in a text stands for the mark.
  void take_spaces_for_marks() {
    for (std::size_t other = 0; other < 256; ++other) {
      meets_[other << 8 | ' '] = meets_[other << 8 | kMark];
      meets_[std::size_t{' '} << 8 | other] = meets_[kMark << 8 | other];
    }
    meets_[std::size_t{' '} << 8 | ' '] = meets_[kMark << 8 | kMark];
  }

  bool cuts_before_marks() const {
    for (std::size_t last = 0; last < kMark; ++last) {
      if (meets_[last << 8 | kMark]) return false;
    }
    return true;
  }

  // Calls visit(begin, end) for each word of the text, valid UTF-8.
  template <class Visit>
  void each_word(std::string_view text, const Visit& visit) const {
    std::size_t begin = 0, last = 0;
    for (std::size_t at = 0; at < text.size();) {
      const Ends next = ends_at(text, at);
      if (!meets_[last << 8 | next.first] && at > begin) {
        visit(begin, at);
        begin = at;
      }
      last = next.last;
      at += next.length;
    }
    if (begin < text.size()) visit(begin, text.size());
  }

 private:
  // A byte that UTF-8 does not have stands for the mark, which is much more frequent than its
  // neighbours.
  static constexpr std::size_t kMark = 0xFF;
  struct Ends {
    std::size_t first, last, length;
  };
  static Ends ends_at(std::string_view text, std::size_t at) {
    const auto first = static_cast<unsigned char>(text[at]);
    if (first < 0x80) return {first, first, 1};
    if (has_word_mark(text, at)) {
      return {kMark, kMark, kWordMark.size()};
    }
    const auto length = static_cast<std::size_t>(utf8_at(text, at).length);
    return {first, static_cast<unsigned char>(text[at + length - 1]), length};
  }
  static std::size_t last_of(std::string_view text) {
    return text.ends_with(kWordMark) ? kMark : static_cast<unsigned char>(text.back());
  }

  std::array<bool, 256 * 256> meets_{};  // not bits: they are asked for each character
};

// The words of one thread.
class MetaspaceWords {
 public:
  // Whether spaces stand for marks: words to be encoded have the marks.
  explicit MetaspaceWords(bool spaces = false) : spaces_(spaces) {}
  void take_spaces(bool spaces) { spaces_ = spaces; }

  // Appends the ids of a text; encode(word, ids) does those of a word that is not known, and says
  // whether they are to be remembered.
  template <class Encode>
  void encode(const WordBorders& borders, std::string_view text, std::vector<TokenId>& ids,
              const Encode& encode) {
    IdOutput output(ids, text.size());
    each(borders, text, [&](const Word& word) { add(word, output, encode); });
  }
  struct Word {
    std::string_view text;
    WordKey key;  // zeros: the word is too long for one
    bool has_key() const { return key != WordKey{0, 0}; }
  };
  // Calls visit(word) for each word of the text, some at a time, so that the cache's memory is
  // there by then.
  template <class Visit>
  void each(const WordBorders& borders, std::string_view text, const Visit& visit) {
    std::size_t waiting = 0;
    borders.each_word(text, [&](std::size_t begin, std::size_t end) {
      wait(text, begin, end, waiting);
      if (++waiting < waiting_.size()) return;
      for (const Word& word : waiting_) visit(word);
      waiting = 0;
    });
    for (std::size_t i = 0; i < waiting; ++i) visit(waiting_[i]);
  }

  // Appends the ids of a word; the answer is encode's.
  template <class Encode>
  [[gnu::noinline]] bool add(const Word& word, IdOutput& output, const Encode& encode) {
    if (word.has_key()) {
      const std::size_t found = cache_.find(word.key, output.room(WordCache::kMaxIds));
      if (found > 0) [[likely]] {
        output.advance(found);
        return true;
      }
    }
    ids_.clear();
    const bool remember = encode(spelled(word.text), ids_);
    output.append(ids_);
    if (remember && word.has_key()) cache_.insert(word.key, ids_);
    return remember;
  }

  WordCache& cache() { return cache_; }
  // The word with marks.
  std::string_view spelled(std::string_view word) {
    if (!spaces_ || word.find(' ') == word.npos) return word;
    spelled_.clear();
    append_replacing(word, ' ', kWordMark, spelled_);
    return spelled_;
  }

 private:
  // The mark of a word's start is left out of the key, so that longer words fit in.
  Word word_at(std::string_view text, std::size_t begin, std::size_t end) const {
    const std::string_view word = text.substr(begin, end - begin);
    const bool spaced = spaces_ && word[0] == ' ';
    const bool marked = spaced || has_word_mark(word, 0);
    const std::size_t start = spaced ? 1 : marked ? kWordMark.size() : 0;
    const std::size_t size = word.size() - start;
    if (size > WordKey::kMaxLength) return {word, {0, 0}};
    return {word, WordKey::of(word.data() + start, size, text.size() - begin - start, marked)};
  }

  // Not inline, so that the loop over the text's bytes keeps its registers.
  [[gnu::noinline]] void wait(std::string_view text, std::size_t begin, std::size_t end,
                              std::size_t place) {
    waiting_[place] = word_at(text, begin, end);
    cache_.prefetch(waiting_[place].key);
  }

  std::array<Word, 16> waiting_;
  WordCache cache_;
  std::vector<TokenId> ids_;
  bool spaces_;
  std::string spelled_;
};

}  // namespace bloomery
