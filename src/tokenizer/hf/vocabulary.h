// The tokens of a model: spelling to id and back.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace bloomery::hf {

class Vocabulary {
 public:
  // A spelling given twice keeps the later id, as a JSON object with a repeated key does.
  void add(std::string_view piece, TokenId id);

  std::optional<TokenId> find(std::string_view piece) const;
  // Null for an id that no token has.
  const std::string* piece(TokenId id) const;
  // How many spellings; one more than the largest id.
  std::size_t size() const { return ids_.size(); }
  std::int64_t end_id() const { return static_cast<std::int64_t>(pieces_.size()); }

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };
  std::unordered_map<std::string, TokenId, Hash, std::equal_to<>> ids_;
  std::vector<const std::string*> pieces_;  // into ids_, whose keys stay where they are
};

}  // namespace bloomery::hf
