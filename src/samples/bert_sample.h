// One BERT sample from the sentences of a mapping row.
#pragma once

#include "samples/masking.h"

namespace bloomery {

// All arrays have the padded length.
struct BertSample {
  std::vector<TokenId> tokens;  // [CLS] A [SEP] B [SEP] with hidden words, padded
  std::vector<TokenId> types;   // 0 for A, 1 for B, the pad id in the padding (as Megatron)
  std::vector<TokenId> labels;  // the true token where one was hidden, -1 elsewhere
  std::vector<std::uint8_t> loss_mask, padding_mask;
  std::int32_t num_tokens = 0;  // that are no padding
  bool is_random = false;       // A and B were swapped
  bool truncated = false;
};

using SentenceTokens = std::vector<std::vector<TokenId>>;

// `target` tokens of text in `seq_length` places. `random` is RandomState((seed + k) mod 2^32) for
// sample k.
BertSample make_bert_sample(const SentenceTokens& sentences, std::int64_t target,
                            std::int64_t seq_length, double mask_prob, bool binary_head,
                            const MaskingVocabulary& vocabulary, NumpyRandom& random);

}  // namespace bloomery
