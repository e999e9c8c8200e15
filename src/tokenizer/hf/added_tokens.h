// Tokens that are looked for in the text itself, before the model sees it: special tokens and
// those that a vocabulary was extended by.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "config/json_fields.h"
#include "tokenizer/hf/model.h"
#include "tokenizer/hf/normalizer.h"
#include "tokenizer/token_matcher.h"
#include "tokenizer/tokenizer.h"

namespace bloomery::hf {

struct AddedToken {
  TokenId id = 0;
  std::string content;
  // What is looked for: the content, normalised where `normalized` says so.
  std::string pattern;
  bool single_word = false;             // only between characters that are not of a word
  bool lstrip = false, rstrip = false;  // takes the white space beside it
  bool normalized = false;              // looked for in the normalised text
  bool special = false;
};

class AddedTokens {
 public:
  // Of the objects under "added_tokens". Ids are the model's for spellings that it has, and
  // follow its vocabulary in the order of the array otherwise, whatever the file says, unless it
  // `has_ids`.
  AddedTokens(const std::vector<JsonFields>& objects, const Model& model,
              const Normalizer* normalizer, bool has_ids);

  // A stretch of text that is one added token, or lies between two.
  struct Part {
    std::size_t begin, end;
    const AddedToken* token;  // null: text
  };
  // Cuts a text at the tokens that are looked for in normalised text, or at the others.
  void split(std::string_view text, bool normalized, bool parse_special,
             std::vector<Part>& parts) const;
  bool any(bool normalized) const { return !matchers_[normalized].empty(); }

  const AddedToken* find(TokenId id) const;
  const AddedToken* find(std::string_view content) const;
  TokenId end_id() const { return end_id_; }  // one more than the largest

 private:
  std::vector<AddedToken> tokens_;
  std::unordered_map<TokenId, std::size_t> by_id_;
  std::unordered_map<std::string, std::size_t> by_content_;
  TokenId end_id_ = 0;
  std::array<TokenMatcher, 2> matchers_;  // of the text as it is, of the normalised text
};

}  // namespace bloomery::hf
