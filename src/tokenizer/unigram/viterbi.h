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

// SentencePiece's precaution against the rounding of sums that have grown large: beyond this the
// count begins again.
inline constexpr float kLargestSum = 100000.0F;

// Scratch of one thread. Score is the type in which the score of a path is kept: references differ
// (SentencePiece rounds each sum to float and starts again where sums get large, Hugging Face keeps
// doubles), and rounding decides between almost equal paths.
template <class Score>
struct ViterbiScratch {
  std::vector<Score> best;    // of the best path that ends at this byte
  std::vector<Score> second;  // of the best of those whose last piece is another
  std::vector<TokenId> last;  // the last piece of the best
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
  // `sum` is what the score of a path begins with: the score of the text before this one, where no
  // piece reaches across; it becomes that of both.
  template <class Score>
  void segment(std::string_view text, ViterbiScratch<Score>& scratch, Score& sum) const;
  // By how much the best way wins over any other at each of its borders, as segment() has left it.
  template <class Score>
  static Score margin(const ViterbiScratch<Score>& scratch);

  TokenId find(std::string_view piece) const { return trie_.find(piece); }
  double score(TokenId id) const { return scores_[static_cast<std::size_t>(id)]; }
  double unknown_score() const { return unknown_score_; }

 private:
  template <class Score>
  void search(std::string_view text, ViterbiScratch<Score>& scratch, Score sum) const;

  ByteTrie trie_;
  std::vector<double> scores_;        // by id
  std::vector<std::uint32_t> sizes_;  // by id, in bytes
  std::size_t longest_ = 4;           // in bytes; a character may be taken as unknown
  TokenId unknown_;
  double unknown_score_;
};

}  // namespace bloomery
