// What every tokenizer does: text to ids and back. A Tokenizer is immutable and shared by threads;
// each thread encodes through an Encoder of its own, which holds the caches and scratch memory.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery {

using TokenId = std::int32_t;

struct EncodeOptions {
  // The post-processor adds its own tokens: [CLS] and [SEP], <s>, </s>.
  bool add_special_tokens = false;
  // Special tokens written in the text become their ids; otherwise they are plain text.
  bool parse_special = true;
  // So do the control pieces of a SentencePiece model, which SentencePiece itself takes for text.
  bool parse_control = false;
  // A model continues the text: the end that every text of a unigram SentencePiece model gets is
  // left out.
  bool is_prompt = false;
};

class Encoder {
 public:
  virtual ~Encoder() = default;
  // Appends the ids of one text, which must be valid UTF-8.
  virtual void encode(std::string_view text, std::vector<TokenId>& ids) = 0;
};

// The tokens with a meaning of their own, where the vocabulary has them.
struct SpecialTokens {
  std::optional<TokenId> bos, eos, pad, unk, cls, sep, mask;
  std::optional<TokenId> eod;  // Megatron's end of document
};

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // The encoder refers to this tokenizer, which must outlive it.
  virtual std::unique_ptr<Encoder> make_encoder(const EncodeOptions& options = {}) const = 0;
  // The text of the ids, special tokens included, as valid UTF-8: bytes that are none become
  // U+FFFD. An id outside the vocabulary is an Error.
  virtual std::string decode(std::span<const TokenId> ids) const = 0;

  // One more than the largest id, added tokens included.
  virtual std::int64_t vocab_size() const = 0;
  // A token as the vocabulary file spells it; empty for an id that no token has.
  virtual std::string piece(TokenId id) const = 0;
  virtual std::optional<TokenId> find(std::string_view piece) const = 0;
  // The bytes that a token stands for inside of a text, part of a character perhaps: a mark of
  // words is a space, a special token what it is called. Empty for the unknown token.
  virtual std::string surface(TokenId id) const = 0;
  // Whether it is a token for the model and no text, which `skip_special_tokens` leaves out.
  virtual bool is_special(TokenId id) const = 0;
  virtual const SpecialTokens& special() const = 0;
};

}  // namespace bloomery
