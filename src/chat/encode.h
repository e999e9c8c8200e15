// A rendered text as tokens: what a user wrote never becomes a special token, and each token knows
// whether it is to be learnt.
#pragma once

#include <memory>
#include <vector>

#include "chat/jinja/text.h"
#include "tokenizer/tokenizer.h"

namespace bloomery {

struct MarkedTokens {
  std::vector<TokenId> ids;
  std::vector<std::uint8_t> generated;  // 1: some of its bytes are marked kGenerated
};

class MarkedEncoder {
 public:
  // `add_special_tokens`: the tokenizer puts its own around the text. The tokenizer must outlive
  // it.
  MarkedEncoder(const Tokenizer& tokenizer, bool add_special_tokens);

  // Where a text from input spells a special token, it is encoded apart from what is around it.
  std::vector<TokenId> ids(const jinja::Text& text);
  // An UnmaskableRecord when it cannot be said which tokens the marks are on.
  MarkedTokens encode(const jinja::Text& text);
  // The ids alone of a text without marks, without added tokens.
  std::vector<TokenId> encode_plain(std::string_view text);

 private:
  bool spells_special(std::string_view text);

  const Tokenizer& tokenizer_;
  std::unique_ptr<Encoder> whole_, special_, plain_;
};

}  // namespace bloomery
