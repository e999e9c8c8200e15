// Which tokens of a BERT or T5 sample are hidden, drawn exactly as Megatron-DeepSpeed draws them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/generators/numpy_random.h"
#include "tokenizer/tokenizer.h"

namespace bloomery {

// What masking must know of a vocabulary. Megatron's WordPiece vocabulary is that of the file, then
// [BOS], [EOS] and <extra_id_0>, ... where the file lacks them.
struct MaskingVocabulary {
  std::vector<bool> continues;  // by id: the piece goes on with the word before it ("##ing")
  TokenId cls = 0, sep = 0, mask = 0, pad = 0, bos = 0, eos = 0;
  std::vector<TokenId> sentinels;

  std::int64_t size() const { return static_cast<std::int64_t>(continues.size()); }
};

// A tokenizer without [CLS], [SEP], [MASK] and [PAD] is an Error.
MaskingVocabulary masking_vocabulary(const Tokenizer& tokenizer, std::int64_t vocab_extra_ids);

enum class MaskingStyle {
  bert,  // up to 3 words; a hidden token becomes [MASK] (80 %), itself or any token (10 % each)
  t5     // up to 10 words, geometric; every hidden token becomes [MASK]
};

struct MaskedTokens {
  std::vector<TokenId> tokens;                   // with the hidden ones replaced
  std::vector<std::vector<std::int64_t>> spans;  // hidden positions, ordered by their first
};

// Hides words of `tokens`, at most max(1, len * probability) and maximum tokens.
MaskedTokens mask_tokens(std::span<const TokenId> tokens, const MaskingVocabulary& vocabulary,
                         MaskingStyle style, double probability, double maximum,
                         NumpyRandom& random);

}  // namespace bloomery
