// One thread's encoder of a BpeModel.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tokenizer/bpe/word_cache.h"
#include "tokenizer/hf/bpe_model.h"
#include "tokenizer/utf8.h"

namespace bloomery::hf {

class BpeModelEncoder : public ModelEncoder {
 public:
  explicit BpeModelEncoder(const BpeModel& model);

  void encode(std::string_view piece, std::vector<TokenId>& ids) override;
  void encode_bytes(std::string_view piece, std::vector<TokenId>& ids) override;

 private:
  // A piece, or a word of it: through the cache when it is short.
  void encode_word(std::string_view word, std::size_t readable, std::vector<TokenId>& ids);
  // The tokens of a word's characters, before any merge.
  void split_word(std::string_view word);
  TokenId find_character(std::string_view word, std::size_t at, Utf8Char next);
  bool fall_back_to_bytes(std::string_view spelling);

  const BpeModel& model_;
  std::optional<ByteBpeEncoder> bytes_;
  WordCache cache_;
  std::vector<TokenId> parts_;
  std::string spelling_;
  MergeScratch scratch_;
};

}  // namespace bloomery::hf
