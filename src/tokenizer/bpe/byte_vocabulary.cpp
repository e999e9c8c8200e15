#include "tokenizer/bpe/byte_vocabulary.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "base/error.h"
#include "tokenizer/bpe/byte_alphabet.h"

namespace bloomery {
namespace {

std::uint64_t hash_of(std::string_view bytes) { return std::hash<std::string_view>{}(bytes); }

std::uint32_t tag_of(std::uint64_t hash) { return static_cast<std::uint32_t>(hash >> 32); }

}  // namespace

ByteVocabulary::ByteVocabulary(std::vector<ByteToken> tokens) : tokens_(std::move(tokens)) {
  std::erase_if(tokens_, [](const ByteToken& token) { return token.bytes.empty(); });
  index_ids();
  index_bytes();
}

void ByteVocabulary::index_ids() {
  // A file of few tokens must not make a huge table: gaps are allowed up to seven eighths.
  const std::int64_t limit = 8 * (static_cast<std::int64_t>(tokens_.size()) + 1024);
  TokenId largest = -1;
  for (const ByteToken& token : tokens_) {
    check(token.id >= 0 && token.id < limit, "the vocabulary gives token '",
          spell_bytes(token.bytes), "' the id ", token.id, "; with ", tokens_.size(),
          " tokens, ids must be from 0 to ", limit - 1);
    largest = std::max(largest, token.id);
  }
  index_of_id_.assign(static_cast<std::size_t>(largest) + 1, kNotFound);
  for (std::uint32_t i = 0; i < tokens_.size(); ++i) {
    std::uint32_t& index = index_of_id_[static_cast<std::size_t>(tokens_[i].id)];
    check(index == kNotFound, "the vocabulary gives the id ", tokens_[i].id, " to two tokens, '",
          spell_bytes(tokens_[index == kNotFound ? i : index].bytes), "' and '",
          spell_bytes(tokens_[i].bytes), "'");
    index = i;
  }
}

void ByteVocabulary::index_bytes() {
  slots_.assign(std::bit_ceil(std::max<std::size_t>(tokens_.size() * 2, 16)), Slot{0, kNotFound});
  const std::size_t mask = slots_.size() - 1;
  for (std::uint32_t i = 0; i < tokens_.size(); ++i) {
    const std::string& bytes = tokens_[i].bytes;
    longest_ = std::max(longest_, bytes.size());
    const std::uint64_t hash = hash_of(bytes);
    std::size_t at = hash & mask;
    for (; slots_[at].index != kNotFound; at = (at + 1) & mask) {
      check(slots_[at].tag != tag_of(hash) || tokens_[slots_[at].index].bytes != bytes,
            "the vocabulary has the token '", spell_bytes(bytes), "' twice");
    }
    slots_[at] = {tag_of(hash), i};
  }
}

std::uint32_t ByteVocabulary::index_of(std::string_view bytes) const {
  if (bytes.size() > longest_) return kNotFound;
  const std::size_t mask = slots_.size() - 1;
  const std::uint64_t hash = hash_of(bytes);
  for (std::size_t at = hash & mask; slots_[at].index != kNotFound; at = (at + 1) & mask) {
    if (slots_[at].tag == tag_of(hash) && tokens_[slots_[at].index].bytes == bytes) {
      return slots_[at].index;
    }
  }
  return kNotFound;
}

std::optional<TokenId> ByteVocabulary::find(std::string_view bytes) const {
  const std::uint32_t index = index_of(bytes);
  if (index == kNotFound) return std::nullopt;
  return tokens_[index].id;
}

std::string_view ByteVocabulary::bytes(TokenId id) const {
  if (id < 0 || id >= id_limit()) return {};
  const std::uint32_t index = index_of_id_[static_cast<std::size_t>(id)];
  return index == kNotFound ? std::string_view{} : tokens_[index].bytes;
}

}  // namespace bloomery
