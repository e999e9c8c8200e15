// The pieces of a SentencePiece model by id and by text.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "tokenizer/sentencepiece/model_file.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/trie.h"
#include "tokenizer/vocabulary.h"

namespace bloomery {

class PieceTable {
 public:
  // Refers to the pieces, which must outlive it.
  explicit PieceTable(const std::vector<SentencePieceEntry>& pieces);

  std::size_t size() const { return pieces_.size(); }
  const SentencePieceEntry& operator[](TokenId id) const {
    return pieces_[static_cast<std::size_t>(id)];
  }
  TokenId unknown() const { return unknown_; }
  // The normal, user-defined and unused pieces.
  const Vocabulary& text() const { return text_; }
  // A control, unknown or byte piece comes before a piece of text that is spelled the same.
  std::optional<TokenId> find(std::string_view text) const;
  // The piece that text like this becomes: unknown if there is none.
  TokenId id_of(std::string_view text) const { return find(text).value_or(unknown_); }
  TokenId byte_id(unsigned char byte) const { return byte_ids_[byte]; }

  bool has(PieceType type) const;
  // The user-defined symbols, which are never cut and never joined.
  ByteTrie user_defined() const;

 private:
  const std::vector<SentencePieceEntry>& pieces_;
  Vocabulary reserved_, text_;
  std::array<TokenId, 256> byte_ids_;  // unknown where the model has none
  TokenId unknown_ = 0;
};

}  // namespace bloomery
