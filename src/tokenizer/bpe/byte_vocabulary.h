// The tokens of a byte-level vocabulary: bytes to id and back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace bloomery {

struct ByteToken {
  std::string bytes;
  TokenId id;
};

class ByteVocabulary {
 public:
  static constexpr std::uint32_t kNotFound = UINT32_MAX;

  // Error when two tokens share their bytes or an id, or when an id is negative or so large that a
  // table by id would be mostly empty.
  explicit ByteVocabulary(std::vector<ByteToken> tokens);

  // Position of the token with these bytes among all tokens, or kNotFound.
  std::uint32_t index_of(std::string_view bytes) const;
  const ByteToken& token(std::uint32_t index) const { return tokens_[index]; }
  const std::vector<ByteToken>& tokens() const { return tokens_; }

  std::optional<TokenId> find(std::string_view bytes) const;
  // Empty for an id that no token has; no token is empty.
  std::string_view bytes(TokenId id) const;
  // One more than the largest id.
  TokenId id_limit() const { return static_cast<TokenId>(index_of_id_.size()); }
  std::size_t longest() const { return longest_; }

 private:
  struct Slot {
    std::uint32_t tag;  // the upper half of the hash
    std::uint32_t index;
  };
  void index_ids();
  void index_bytes();

  std::vector<ByteToken> tokens_;
  std::vector<std::uint32_t> index_of_id_;
  std::vector<Slot> slots_;  // open addressing, a power of two
  std::size_t longest_ = 0;
};

}  // namespace bloomery
