#include "tokenizer/bpe/byte_bpe.h"

#include <algorithm>

namespace bloomery {

ByteBpe::ByteBpe(Vocabulary tokens, const std::vector<TokenMerge>& merges,
                 const ByteBpeOptions& options)
    : tokens_(std::move(tokens)), options_(options) {
  for (std::uint32_t byte = 0; byte < kFirstToken; ++byte) {
    const char letter = static_cast<char>(byte);
    id_of_byte_[byte] = tokens_.find({&letter, 1}).value_or(options_.unknown.value_or(-1));
  }
  drops_bytes_ = std::ranges::find(id_of_byte_, -1) != std::end(id_of_byte_);
  // Bytes that are not neighbours in the text may become so where others are left out.
  if (drops_bytes_) may_join_.set();
  std::vector<MergeRule> rules;
  rules.reserve(merges.size());
  for (const auto& [left, right, result] : merges) {
    const std::string_view a = *tokens_.piece(left), b = *tokens_.piece(right);
    if (a.empty() || b.empty()) continue;  // no text has such a part
    const auto part = [](TokenId id, std::string_view bytes) {
      return bytes.size() == 1 ? static_cast<unsigned char>(bytes[0])
                               : static_cast<std::uint32_t>(id) + kFirstToken;
    };
    rules.push_back(
        {part(left, a), part(right, b), static_cast<std::uint32_t>(result) + kFirstToken});
    may_join_.set(static_cast<std::size_t>(static_cast<unsigned char>(a.back())) << 8 |
                  static_cast<unsigned char>(b.front()));
  }
  rules_ = MergeRules(rules);
}

}  // namespace bloomery
