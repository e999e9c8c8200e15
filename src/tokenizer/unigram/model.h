// The Unigram model of a tokenizer.json.
#pragma once

#include <array>

#include "tokenizer/unigram/viterbi.h"

namespace bloomery {

class UnigramModel {
 public:
  using Scratch = ViterbiScratch<double>;

  // Ids count from 0 in the order of the pieces. An unknown character costs ten more than the
  // least likely piece. With byte_fallback, unknown text becomes the pieces <0x00> ... <0xFF>
  // where the vocabulary has those it needs.
  UnigramModel(std::span<const UnigramPiece> pieces, std::optional<TokenId> unknown,
               bool byte_fallback);

  // Appends the ids of one pre-tokenized text. A run of unknown characters becomes one id.
  void encode(std::string_view text, Scratch& scratch, std::vector<TokenId>& ids) const;
  // Appends the ids of a part of such a text, beyond which no piece reaches; false, and nothing, if
  // the rest of the text could matter: by unknown characters, or by how sums are rounded.
  bool encode_part(std::string_view part, Scratch& scratch, std::vector<TokenId>& ids) const;

 private:
  void append_unknown(std::string_view text, std::vector<TokenId>& ids) const;

  UnigramViterbi viterbi_;
  TokenId unknown_;
  bool byte_fallback_;
  std::array<TokenId, 256> byte_ids_;  // kNone: the vocabulary has no such piece
};

}  // namespace bloomery
