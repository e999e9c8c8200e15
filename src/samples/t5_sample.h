// One T5 sample from the sentences of a mapping row.
#pragma once

#include "samples/bert_sample.h"

namespace bloomery {

// Encoder arrays have --encoder-seq-length places, decoder arrays --decoder-seq-length. Attention
// is between places that hold an id of at least 1 (the pad id is 0), in the decoder also causal.
struct T5Sample {
  std::vector<TokenId> encoder_tokens;  // the text, each hidden span replaced by its sentinel
  std::vector<TokenId> decoder_tokens;  // [BOS], then each sentinel with its span
  std::vector<TokenId> labels;  // the decoder's tokens without [BOS], then [EOS]; -1 elsewhere
  std::vector<std::uint8_t> loss_mask;
  std::int32_t encoder_length = 0, decoder_length = 0;  // without the padding
  bool truncated = false;
};

// `random` is RandomState(seed + k) for sample k. Too few sentinels for the spans, or too short a
// decoder, is an Error.
T5Sample make_t5_sample(const SentenceTokens& sentences, std::int64_t target,
                        std::int64_t encoder_length, std::int64_t decoder_length, double mask_prob,
                        const MaskingVocabulary& vocabulary, NumpyRandom& random);

}  // namespace bloomery
