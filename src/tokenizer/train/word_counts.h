// How often each word of a text comes. A word is a piece that a split pattern cuts off, as bytes.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tokenizer/bpe/split_pattern.h"
#include "tokenizer/bpe/word_cache.h"

namespace bloomery {

// Words of one part of the space of hashes. Short words live inside the slots of an open table, so
// that counting one touches one line of memory; long ones are rare.
class WordTable {
 public:
  // `key` is the word's key if it is at most WordKey::kMaxLength bytes long.
  void add(const WordKey& key, std::uint64_t hash, std::uint64_t count);
  void add_long(std::string_view word, std::uint64_t count);
  void add_all(const WordTable& other);

  std::size_t size() const { return used_ + long_.size(); }
  void for_each(const std::function<void(std::string_view, std::uint64_t)>& visit) const;
  // Forgets the words that came `count` times or less.
  void remove_up_to(std::uint64_t count);

 private:
  struct Slot {
    WordKey key{0, 0};  // zeros: free, since no word is empty
    std::uint64_t count = 0;
  };
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };

  void grow();

  std::vector<Slot> slots_;
  std::size_t used_ = 0;
  std::unordered_map<std::string, std::uint64_t, Hash, std::equal_to<>> long_;
};

// All words, divided by their hashes so that counts of several threads are added up in parallel.
class WordCounts {
 public:
  static constexpr std::size_t kShards = 64;

  // Counts the pieces of a text, which must be valid UTF-8.
  void add_text(SplitPattern pattern, std::string_view text);
  // Counts one word, which is not empty.
  void add(std::string_view word, std::uint64_t count = 1) { add(word, word.size(), count); }

  std::size_t size() const;  // different words
  // Every word once, in an order that depends on how they were counted.
  void for_each(const std::function<void(std::string_view, std::uint64_t)>& visit) const;
  // Forgets the rarest words until at most `most` remain: all words with counts up to the smallest
  // number for which that holds. Which words these are depends on nothing but the counts. Returns
  // that number, 0 when nothing is forgotten.
  std::uint64_t keep_most_frequent(std::size_t most);

  WordTable& shard(std::size_t index) { return shards_[index]; }
  const WordTable& shard(std::size_t index) const { return shards_[index]; }

 private:
  // `readable` bytes may be read from the start of the word.
  void add(std::string_view word, std::size_t readable, std::uint64_t count);

  std::array<WordTable, kShards> shards_;
};

}  // namespace bloomery
