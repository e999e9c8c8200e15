// Decoding one id at a time, for text that is shown while it is made.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace bloomery {

// All that push() and finish() return, joined, is decode() of all ids. Each return value is whole
// characters: bytes of a character that is not complete wait for the rest of it. Ids are decoded
// together with a few before them, so the work per id does not grow with the text.
class StreamDecoder {
 public:
  // The tokenizer must outlive the decoder.
  explicit StreamDecoder(const Tokenizer& tokenizer) : tokenizer_(tokenizer) {}
  // What is pushed goes on behind a prompt, whose own text is not returned. A character that the
  // prompt begins belongs to what follows.
  StreamDecoder(const Tokenizer& tokenizer, std::span<const TokenId> prompt);

  // The text that this id adds; empty when it has to wait for more.
  std::string push(TokenId id);
  // What is still held back. The decoder is then as new.
  std::string finish();

 private:
  bool may_change(std::string_view text) const;

  const Tokenizer& tokenizer_;
  std::vector<TokenId> ids_;  // the prompt's, and since the last finish()
  bool has_prompt_ = false;
  std::size_t window_ = 0;    // where decoding starts again
  std::size_t settled_ = 0;   // ids whose text was returned
  std::string settled_text_;  // decode() of the ids from window_ to settled_
  std::size_t returned_ = 0;  // bytes since the last finish()
  std::size_t retry_ = 0;     // ids at which decoding is tried again
};

}  // namespace bloomery
