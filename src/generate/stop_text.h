// Incremental detokenization: the text of tokens as they come, up to the first stop string.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "tokenizer/stream_decoder.h"

namespace bloomery {

class StopText {
 public:
  // The text is what follows the tokens of the prompt. `skip_special`: special tokens have no text.
  // Tokenizer and stop strings (none empty) must outlive this object.
  StopText(const Tokenizer& tokenizer, std::span<const std::string> stops,
           std::span<const TokenId> prompt, bool skip_special = false);

  // The text that this token makes certain: whole characters, and nothing that may turn out to
  // belong to a stop string. A token that the tokenizer does not have, as models with a rounded
  // vocabulary may give, has no text.
  std::string push(TokenId token);
  // What was held back. No token may follow.
  std::string finish();

  bool stopped() const { return stopped_; }          // at a stop string, which is not in the text
  const std::string& text() const { return text_; }  // all that was returned

 private:
  std::string release(bool all);

  const Tokenizer& tokenizer_;
  bool skip_special_;
  StreamDecoder decoder_;
  std::span<const std::string> stops_;
  std::string text_, held_;
  bool stopped_ = false;
};

}  // namespace bloomery
