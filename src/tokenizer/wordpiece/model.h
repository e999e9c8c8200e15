// WordPiece: a word becomes its longest known beginning, then the longest known continuation of
// what is left, and so on; a word that does not come out even is unknown as a whole.
#pragma once

#include <string>
#include <vector>

#include "tokenizer/tokenizer.h"
#include "tokenizer/trie.h"

namespace bloomery {

class WordPieceModel {
 public:
  struct Options {
    std::string continuation = "##";  // how pieces begin that do not begin a word
    TokenId unknown = 0;
    std::size_t longest_word = 100;  // in characters; a longer word is unknown
  };

  WordPieceModel(std::span<const ByteTrie::Entry> vocabulary, const Options& options);

  // Appends the ids of one word: UTF-8, without white space as the caller sees it.
  void encode(std::string_view word, std::vector<TokenId>& ids) const;

 private:
  bool longer_than_allowed(std::string_view word) const;

  ByteTrie trie_;
  ByteTrie::State continuation_;  // kNowhere: no piece continues a word
  TokenId unknown_;
  std::size_t longest_word_;
};

}  // namespace bloomery
