// Texts of test sets as runs of words, and pieces of documents without them: the rules of
// Megatron's filter_ngrams.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

namespace bloomery {

struct NgramOptions {
  int max_ngram_size = 13, min_ngram_size = 8;
  std::int64_t filter_text_char_len = 200;   // pieces must be longer
  std::int64_t key_threshold = 10;           // keys in so many documents are common phrases
  std::int64_t splits_count = 10;            // documents in more pieces are dropped
  std::int64_t remove_char_each_side = 200;  // around a key, up to the end of a sentence
};

// Keys: of a test text of max_ngram_size words or more every run of that many; of one with fewer,
// but min_ngram_size, all of it. Words are letters, numbers and _, in lower case.
class NgramKeys {
 public:
  explicit NgramKeys(const NgramOptions& options) : options_(options) {}

  void add_text(std::string_view text);
  std::size_t size() const { return keys_.size(); }
  const std::string& key(std::size_t number) const { return keys_[number]; }
  // Leaves out keys of which `count` is as high as the threshold or higher.
  void remove_common(const std::vector<std::int64_t>& count);

  // The keys of a text, each once; found from left to right, none within another.
  std::vector<std::size_t> in_text(std::string_view text) const;
  // What remains of a text; itself alone when it has no key; more than splits_count pieces are not
  // all of them. A text of fewer than max_ngram_size
  // words is not looked at, as in the original.
  std::vector<std::string> pieces(std::string_view text) const;

 private:
  struct Hit {
    std::size_t key = 0;
    std::int64_t begin = 0;  // characters before it
  };
  struct Words;

  void add_key(std::string key, int words);
  bool find(const Words& words, Hit& hit) const;
  bool matches(const Words& words, std::size_t first, int count, Hit& hit) const;

  const NgramOptions options_;
  std::vector<std::string> keys_;
  std::vector<int> sizes_;  // that keys have, ascending
  std::unordered_map<std::string, std::size_t> numbers_;
  std::unordered_set<std::uint64_t> beginnings_;  // hashes of the first min_ngram_size words
};

}  // namespace bloomery
