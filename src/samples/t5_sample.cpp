#include "samples/t5_sample.h"

#include "base/error.h"

namespace bloomery {
namespace {

void pad(std::vector<TokenId>& tokens, std::int64_t length, TokenId filler, const char* option) {
  check(static_cast<std::int64_t>(tokens.size()) <= length, "a T5 sample needs ", tokens.size(),
        " places; ", option, " is ", length);
  tokens.resize(length, filler);
}

}  // namespace

T5Sample make_t5_sample(const SentenceTokens& sentences, std::int64_t target,
                        std::int64_t encoder_length, std::int64_t decoder_length, double mask_prob,
                        const MaskingVocabulary& vocabulary, NumpyRandom& random) {
  std::vector<TokenId> text;
  for (const std::vector<TokenId>& sentence : sentences) {
    text.insert(text.end(), sentence.begin(), sentence.end());
  }
  T5Sample sample;
  sample.truncated = static_cast<std::int64_t>(text.size()) > target;
  text.resize(std::min<std::size_t>(text.size(), target));
  const MaskedTokens masked = mask_tokens(text, vocabulary, MaskingStyle::t5, mask_prob,
                                          mask_prob * static_cast<double>(target), random);
  check(masked.spans.size() <= vocabulary.sentinels.size(), "a T5 sample hides ",
        masked.spans.size(), " spans, but there are ", vocabulary.sentinels.size(),
        " sentinels; give a larger --vocab-extra-ids, such as 100");

  std::vector<TokenId>& encoder = sample.encoder_tokens;
  std::int64_t next = 0;  // first token of the text not yet copied
  for (std::size_t k = 0; k < masked.spans.size(); ++k) {
    const std::vector<std::int64_t>& span = masked.spans[k];
    sample.labels.push_back(vocabulary.sentinels[k]);
    for (const std::int64_t i : span) {
      sample.labels.push_back(text[i]);
    }
    for (; next < span.front(); ++next) {
      encoder.push_back(masked.tokens[next]);
    }
    encoder.push_back(vocabulary.sentinels[k]);
    next = span.back() + 1;
  }
  encoder.insert(encoder.end(), masked.tokens.begin() + next, masked.tokens.end());
  sample.decoder_tokens.push_back(vocabulary.bos);
  sample.decoder_tokens.insert(sample.decoder_tokens.end(), sample.labels.begin(),
                               sample.labels.end());
  sample.labels.push_back(vocabulary.eos);

  sample.encoder_length = static_cast<std::int32_t>(encoder.size());
  sample.decoder_length = static_cast<std::int32_t>(sample.labels.size());
  sample.loss_mask.assign(sample.labels.size(), 1);
  pad(encoder, encoder_length, vocabulary.pad, "--encoder-seq-length");
  pad(sample.decoder_tokens, decoder_length, vocabulary.pad, "--decoder-seq-length");
  pad(sample.labels, decoder_length, -1, "--decoder-seq-length");
  sample.loss_mask.resize(decoder_length, 0);
  return sample;
}

}  // namespace bloomery
