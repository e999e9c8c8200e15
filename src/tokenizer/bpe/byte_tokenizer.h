// A Tokenizer made of byte-level BPE, a split pattern and some tokens beside the vocabulary: what
// GPT-2 and tiktoken files describe.
#pragma once

#include <unordered_map>

#include "tokenizer/bpe/byte_bpe.h"
#include "tokenizer/tokenizer.h"

namespace bloomery {

struct ByteTokenizerParts {
  ByteBpe model;
  SplitPattern pattern = SplitPattern::gpt2;
  // Tokens that merging does not make, by their text. An id of the model must not be among them.
  std::vector<ByteToken> extra;
  std::vector<ByteToken> in_text;  // found in texts when special tokens are parsed
  bool spelled = false;            // pieces are shown in the printable alphabet of the file
  SpecialTokens special;
};

class ByteTokenizer final : public Tokenizer {
 public:
  explicit ByteTokenizer(ByteTokenizerParts parts);

  std::unique_ptr<Encoder> make_encoder(const EncodeOptions& options) const override;
  std::string decode(std::span<const TokenId> ids) const override;
  std::int64_t vocab_size() const override { return vocab_size_; }
  std::string piece(TokenId id) const override;
  std::optional<TokenId> find(std::string_view piece) const override;
  const SpecialTokens& special() const override { return parts_.special; }

 private:
  // The token beside the vocabulary with this id; nullptr when there is none.
  const ByteToken* find_extra(TokenId id) const;

  const ByteTokenizerParts parts_;
  std::unordered_map<TokenId, const ByteToken*> extra_by_id_;
  std::unordered_map<std::string_view, TokenId> extra_by_text_;
  std::int64_t vocab_size_;
};

}  // namespace bloomery
