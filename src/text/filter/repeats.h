// What of a text repeats within it.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace bloomery {

// Parts that equal an earlier one.
struct Repeats {
  std::int64_t count = 0, characters = 0;
};
Repeats repeats_of(const std::vector<std::string_view>& parts);

// Runs of n words that repeat, found by hashes of 61 bits.
class WordRepeats {
 public:
  explicit WordRepeats(const std::vector<std::string_view>& words);

  // Characters of the most frequent n-gram, with spaces between its words, times its count; of
  // several, the first in the text counts.
  std::int64_t most_frequent(int n);
  // Characters, without spaces, of n-grams that came before: from such a one the search goes on
  // behind it, else with the next word.
  std::int64_t repeated(int n);

 private:
  // Hash of the words [first, last) one after another, with spaces between or not.
  std::uint64_t hash(bool spaces, std::size_t first, std::size_t last);
  std::uint64_t power(std::uint64_t exponent);  // of the base
  std::int64_t length(std::size_t first, std::size_t last) const {
    return lengths_[last] - lengths_[first];
  }

  std::vector<std::uint64_t> plain_, spaced_;  // hashes of the first i words
  std::vector<std::uint64_t> bytes_;           // of them, without spaces
  std::vector<std::int64_t> lengths_;          // in characters
  std::vector<std::uint64_t> powers_;
};

}  // namespace bloomery
