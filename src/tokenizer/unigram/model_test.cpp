#include "tokenizer/unigram/model.h"

#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"

namespace bloomery {
namespace {

using Ids = std::vector<TokenId>;

Ids encode(const UnigramModel& model, std::string_view text) {
  UnigramModel::Scratch scratch;
  Ids ids;
  model.encode(text, scratch, ids);
  return ids;
}

const std::vector<UnigramPiece> kPieces = {{"<unk>", 0, 0}, {"a", 1, 0},   {"b", 2, 0},
                                           {"c", 3, 0},     {"d", 4, 0},   {"cd", 5, 1},
                                           {"ab", 6, 2},    {"abc", 7, 5}, {"abcd", 8, 10}};

TEST(UnigramModel, TakesTheLikeliestPath) {
  const UnigramModel model(kPieces, 0, false);
  EXPECT_EQ(encode(model, "abcdacdxx"), (Ids{8, 1, 5, 0}));
  EXPECT_EQ(encode(model, "xéyab"), (Ids{0, 6}));
  EXPECT_EQ(encode(model, ""), Ids{});
}

TEST(UnigramModel, UnknownTextFallsBackToBytesWhereThePiecesExist) {
  std::vector<UnigramPiece> pieces = kPieces;
  pieces.push_back({"<0xC3>", 9, -5});
  pieces.push_back({"<0xA9>", 10, -5});
  const UnigramModel model(pieces, 0, true);
  EXPECT_EQ(encode(model, "aéb"), (Ids{1, 9, 10, 2}));
  EXPECT_EQ(encode(model, "aéxb"), (Ids{1, 0, 2}));  // x has no byte piece: the run is unknown
}

TEST(UnigramModel, WithoutAnUnknownPieceAnUncoveredCharacterIsAnError) {
  const UnigramModel model(kPieces, std::nullopt, false);
  EXPECT_EQ(encode(model, "abcd"), (Ids{8}));
  EXPECT_THROW(encode(model, "abz"), Error);
}

TEST(UnigramModel, ScoresMustBeFinite) {
  const UnigramPiece pieces[] = {{"a", 0, -std::numeric_limits<double>::infinity()}};
  EXPECT_THROW(UnigramModel(pieces, 0, false), Error);
}

}  // namespace
}  // namespace bloomery
