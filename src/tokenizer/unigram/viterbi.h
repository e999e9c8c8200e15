// The likeliest way to cut a text into the pieces of a unigram language model.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"
#include "tokenizer/trie.h"

namespace bloomery {

struct UnigramPiece {
  std::string_view text;
  TokenId id;
  double score;  // logarithm of the probability; finite
};

struct Segment {
  std::size_t begin, end;
  TokenId id;
};

// Scratch of one thread. Score is the type in which the score of a path is kept: references differ
// (SentencePiece rounds each sum to float and starts again where sums get large, Hugging Face keeps
// doubles), and rounding decides between almost equal paths.
template <class Score>
struct ViterbiScratch {
  std::vector<Score> best;    // of the best path that ends at this byte
  std::vector<TokenId> last;  // its last piece
  std::vector<Segment> segments;
};

class UnigramViterbi {
 public:
  // A character that is no piece of its own may always be taken as `unknown`, for unknown_score.
  // kNone: there is no unknown piece, and such a character is an Error.
  static constexpr TokenId kNone = -1;
  UnigramViterbi(std::span<const UnigramPiece> pieces, TokenId unknown, double unknown_score);

  // The segments of the text (valid UTF-8) in order, left in the scratch. Of two paths with equal
  // scores the one whose last piece begins first wins. Linear in the text times the longest piece.
  template <class Score>
  void segment(std::string_view text, ViterbiScratch<Score>& scratch) const;

  TokenId find(std::string_view piece) const { return trie_.find(piece); }

 private:
  template <class Score>
  void search(std::string_view text, ViterbiScratch<Score>& scratch) const;

  ByteTrie trie_;
  std::vector<double> scores_;        // by id
  std::vector<std::uint32_t> sizes_;  // by id, in bytes
  std::size_t longest_ = 4;           // in bytes; a character may be taken as unknown
  TokenId unknown_;
  double unknown_score_;
};

}  // namespace bloomery
