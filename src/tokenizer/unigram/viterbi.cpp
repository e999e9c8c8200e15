#include "tokenizer/unigram/viterbi.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "base/error.h"
#include "tokenizer/utf8.h"

namespace bloomery {
namespace {

// In `last`, a character taken as unknown; different from the unknown piece, which may itself be
// written in the text.
constexpr TokenId kUnset = -1;
constexpr TokenId kUnknownCharacter = -2;

// Counts from position `begin` on: what leads there is taken off the paths that end at or after it.
template <class Score>
void lift(ViterbiScratch<Score>& scratch, std::size_t begin, std::size_t end) {
  const Score until_here = scratch.best[begin];
  for (std::size_t i = begin; i <= end; ++i) {
    if (scratch.last[i] != kUnset) scratch.best[i] -= until_here;
  }
}

std::size_t character_begin(std::string_view text, std::size_t end) {
  do {
    --end;
  } while ((text[end] & 0xC0) == 0x80);
  return end;
}

ByteTrie make_trie(std::span<const UnigramPiece> pieces) {
  std::vector<ByteTrie::Entry> entries;
  entries.reserve(pieces.size());
  for (const UnigramPiece& piece : pieces) entries.push_back({piece.text, piece.id});
  return ByteTrie(entries);
}

}  // namespace

UnigramViterbi::UnigramViterbi(std::span<const UnigramPiece> pieces, TokenId unknown,
                               double unknown_score)
    : trie_(make_trie(pieces)), unknown_(unknown), unknown_score_(unknown_score) {
  for (const UnigramPiece& piece : pieces) {
    check(std::isfinite(piece.score), "unigram model: piece \"", piece.text, "\" (id ", piece.id,
          ") has the score ", piece.score, "; scores must be finite");
    const auto id = static_cast<std::size_t>(piece.id);
    if (id >= scores_.size()) {
      scores_.resize(id + 1);
      sizes_.resize(id + 1);
    }
    scores_[id] = piece.score;
    sizes_[id] = static_cast<std::uint32_t>(piece.text.size());
    longest_ = std::max(longest_, piece.text.size());
  }
}

template <class Score>
void UnigramViterbi::search(std::string_view text, ViterbiScratch<Score>& scratch,
                            Score sum) const {
  scratch.best.assign(text.size() + 1, sum);
  scratch.second.assign(text.size() + 1, std::numeric_limits<Score>::lowest());
  scratch.last.assign(text.size() + 1, kUnset);
  Score* const best = scratch.best.data();
  TokenId* const last = scratch.last.data();
  last[0] = kUnknownCharacter;  // something leads here
  const auto offer = [&](std::size_t end, Score score, TokenId id) {
    if (last[end] == kUnset || score > best[end]) {
      if (last[end] != kUnset) scratch.second[end] = best[end];
      best[end] = score;
      last[end] = id;
    } else if (score > scratch.second[end]) {
      scratch.second[end] = score;
    }
  };
  for (std::size_t begin = 0; begin < text.size();) {
    if (std::is_same_v<Score, float> && std::abs(best[begin]) > kLargestSum) {
      lift(scratch, begin, std::min(text.size(), begin + longest_));
    }
    const Score until_here = best[begin];
    const std::size_t next = begin + static_cast<std::size_t>(utf8_at(text, begin).length);
    bool has_character = false;
    ByteTrie::State state = ByteTrie::kRoot;
    for (std::size_t at = begin; at < text.size();) {
      state = trie_.next(state, text[at++]);
      if (state == ByteTrie::kNowhere) break;
      const TokenId id = trie_.value(state);
      if (id == ByteTrie::kNoValue) continue;
      offer(at, static_cast<Score>(scores_[static_cast<std::size_t>(id)]) + until_here, id);
      has_character |= at == next;
    }
    if (!has_character) {
      check(unknown_ != kNone, "unigram model: the text has the character \"",
            text.substr(begin, next - begin),
            "\" that no piece covers, and the model has no unknown piece");
      offer(next, static_cast<Score>(unknown_score_) + until_here, kUnknownCharacter);
    }
    begin = next;
  }
}

template <class Score>
void UnigramViterbi::segment(std::string_view text, ViterbiScratch<Score>& scratch,
                             Score& sum) const {
  search(text, scratch, sum);
  sum = scratch.best[text.size()];
  scratch.segments.clear();
  for (std::size_t end = text.size(); end > 0; end = scratch.segments.back().begin) {
    const TokenId id = scratch.last[end];
    if (id == kUnknownCharacter) {
      scratch.segments.push_back({character_begin(text, end), end, unknown_});
    } else {
      scratch.segments.push_back({end - sizes_[static_cast<std::size_t>(id)], end, id});
    }
  }
  std::reverse(scratch.segments.begin(), scratch.segments.end());
}

template <class Score>
Score UnigramViterbi::margin(const ViterbiScratch<Score>& scratch) {
  Score least = std::numeric_limits<Score>::infinity();
  for (const Segment& segment : scratch.segments) {
    least = std::min(least, scratch.best[segment.end] - scratch.second[segment.end]);
  }
  return least;
}

template void UnigramViterbi::segment(std::string_view, ViterbiScratch<float>&, float&) const;
template void UnigramViterbi::segment(std::string_view, ViterbiScratch<double>&, double&) const;
template double UnigramViterbi::margin(const ViterbiScratch<double>&);

}  // namespace bloomery
