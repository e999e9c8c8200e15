#include "tokenizer/hf/vocabulary.h"

namespace bloomery::hf {

void Vocabulary::add(std::string_view piece, TokenId id) {
  const auto [place, added] = ids_.insert_or_assign(std::string(piece), id);
  const auto index = static_cast<std::size_t>(id);
  if (index >= pieces_.size()) pieces_.resize(index + 1);
  pieces_[index] = &place->first;
}

std::optional<TokenId> Vocabulary::find(std::string_view piece) const {
  const auto found = ids_.find(piece);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

const std::string* Vocabulary::piece(TokenId id) const {
  const auto index = static_cast<std::size_t>(id);
  return id < 0 || index >= pieces_.size() ? nullptr : pieces_[index];
}

}  // namespace bloomery::hf
