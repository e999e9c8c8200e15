#include "tokenizer/sentencepiece/piece_table.h"

#include <algorithm>

#include "tokenizer/byte_piece.h"

namespace bloomery {

PieceTable::PieceTable(const std::vector<SentencePieceEntry>& pieces) : pieces_(pieces) {
  text_.reserve(pieces.size(), pieces.size() * 8);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    const PieceType type = pieces[i].type;
    (is_text(type) ? text_ : reserved_).add(pieces[i].text, id);
    if (type == PieceType::unknown) unknown_ = id;
  }
  for (int byte = 0; byte < 256; ++byte) {
    byte_ids_[static_cast<std::size_t>(byte)] = id_of(byte_piece(byte));
  }
}

std::optional<TokenId> PieceTable::find(std::string_view text) const {
  const auto reserved = reserved_.find(text);
  return reserved ? reserved : text_.find(text);
}

bool PieceTable::has(PieceType type) const {
  return std::any_of(pieces_.begin(), pieces_.end(),
                     [&](const SentencePieceEntry& piece) { return piece.type == type; });
}

ByteTrie PieceTable::user_defined() const {
  std::vector<ByteTrie::Entry> entries;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    if (pieces_[i].type == PieceType::user_defined) {
      entries.push_back({pieces_[i].text, static_cast<TokenId>(i)});
    }
  }
  return ByteTrie(entries);
}

}  // namespace bloomery
