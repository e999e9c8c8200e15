#include "tokenizer/unigram/model.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "tokenizer/byte_piece.h"

namespace bloomery {
namespace {

constexpr double kUnknownPenalty = 10.0;

double lowest_score(std::span<const UnigramPiece> pieces) {
  double lowest = std::numeric_limits<double>::infinity();
  for (const UnigramPiece& piece : pieces) lowest = std::min(lowest, piece.score);
  return lowest;
}

}  // namespace

UnigramModel::UnigramModel(std::span<const UnigramPiece> pieces, std::optional<TokenId> unknown,
                           bool byte_fallback)
    : viterbi_(pieces, unknown.value_or(UnigramViterbi::kNone),
               lowest_score(pieces) - kUnknownPenalty),
      unknown_(unknown.value_or(UnigramViterbi::kNone)),
      byte_fallback_(byte_fallback) {
  for (int byte = 0; byte < 256; ++byte) {
    byte_ids_[static_cast<std::size_t>(byte)] = viterbi_.find(byte_piece(byte));
  }
}

void UnigramModel::append_unknown(std::string_view text, std::vector<TokenId>& ids) const {
  // The run as a whole may be a piece after all, where unknown characters are likelier than it.
  if (const TokenId id = viterbi_.find(text); id != ByteTrie::kNoValue) {
    ids.push_back(id);
    return;
  }
  const auto id_of = [&](char byte) { return byte_ids_[static_cast<unsigned char>(byte)]; };
  if (byte_fallback_ && std::all_of(text.begin(), text.end(),
                                    [&](char byte) { return id_of(byte) != ByteTrie::kNoValue; })) {
    for (const char byte : text) ids.push_back(id_of(byte));
    return;
  }
  ids.push_back(unknown_);
}

bool UnigramModel::encode_part(std::string_view part, Scratch& scratch,
                               std::vector<TokenId>& ids) const {
  // A million of such sums are rounded by less than 1e-6, where they are added up.
  constexpr double kSafeSum = 1000, kSafeMargin = 1e-3;
  double sum = 0;
  viterbi_.segment(part, scratch, sum);
  const auto is_unknown = [&](const Segment& segment) { return segment.id == unknown_; };
  if (std::abs(sum) > kSafeSum || UnigramViterbi::margin(scratch) < kSafeMargin ||
      std::ranges::any_of(scratch.segments, is_unknown)) {
    return false;
  }
  for (const Segment& segment : scratch.segments) ids.push_back(segment.id);
  return true;
}

void UnigramModel::encode(std::string_view text, Scratch& scratch,
                          std::vector<TokenId>& ids) const {
  double sum = 0;
  viterbi_.segment(text, scratch, sum);
  const auto& segments = scratch.segments;
  for (std::size_t i = 0; i < segments.size();) {
    if (segments[i].id != unknown_) {
      ids.push_back(segments[i++].id);
      continue;
    }
    const std::size_t begin = segments[i].begin;
    std::size_t end = begin;
    for (; i < segments.size() && segments[i].id == unknown_; ++i) end = segments[i].end;
    append_unknown(text.substr(begin, end - begin), ids);
  }
}

}  // namespace bloomery
