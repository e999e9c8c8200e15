#include "samples/bert_sample.h"

#include "base/error.h"

namespace bloomery {
namespace {

// Tokens [begin, end) of a segment that loses tokens at either side.
struct Segment {
  std::vector<TokenId> tokens;
  std::size_t begin = 0, end = 0;

  std::size_t size() const { return end - begin; }
};

Segment joined(const SentenceTokens& sentences, std::size_t first, std::size_t last) {
  Segment segment;
  for (std::size_t i = first; i < last; ++i) {
    segment.tokens.insert(segment.tokens.end(), sentences[i].begin(), sentences[i].end());
  }
  segment.end = segment.tokens.size();
  return segment;
}

struct Pair {
  Segment a, b;
  bool swapped = false;
};

Pair split_in_two(const SentenceTokens& sentences, bool binary_head, NumpyRandom& random) {
  if (!binary_head) {
    return {joined(sentences, 0, sentences.size()), {}, false};
  }
  check(sentences.size() > 1, "a BERT sample with the binary head needs two sentences");
  std::size_t a_end = 1;
  if (sentences.size() >= 3) {
    a_end =
        static_cast<std::size_t>(random.randint(1, static_cast<std::int64_t>(sentences.size())));
  }
  Pair pair{joined(sentences, 0, a_end), joined(sentences, a_end, sentences.size()), false};
  if (random.random() < 0.5) {
    std::swap(pair.a, pair.b);
    pair.swapped = true;
  }
  return pair;
}

// Takes single tokens off the longer segment, at either end, until both fit.
bool truncate(Pair& pair, std::size_t target, NumpyRandom& random) {
  const bool too_long = pair.a.size() + pair.b.size() > target;
  while (pair.a.size() + pair.b.size() > target) {
    Segment& longer = pair.a.size() > pair.b.size() ? pair.a : pair.b;
    if (random.random() < 0.5) {
      ++longer.begin;
    } else {
      --longer.end;
    }
  }
  return too_long;
}

}  // namespace

BertSample make_bert_sample(const SentenceTokens& sentences, std::int64_t target,
                            std::int64_t seq_length, double mask_prob, bool binary_head,
                            const MaskingVocabulary& vocabulary, NumpyRandom& random) {
  check(target + 3 <= seq_length, "a BERT sample of ", target,
        " tokens and 3 special ones is longer than --seq-length ", seq_length);
  Pair pair = split_in_two(sentences, binary_head, random);
  BertSample sample;
  sample.is_random = pair.swapped;
  sample.truncated = truncate(pair, static_cast<std::size_t>(target), random);

  std::vector<TokenId> tokens;
  const auto add = [&](TokenId token, TokenId type) {
    tokens.push_back(token);
    sample.types.push_back(type);
  };
  add(vocabulary.cls, 0);
  for (std::size_t i = pair.a.begin; i < pair.a.end; ++i) {
    add(pair.a.tokens[i], 0);
  }
  add(vocabulary.sep, 0);
  for (std::size_t i = pair.b.begin; i < pair.b.end; ++i) {
    add(pair.b.tokens[i], 1);
  }
  if (pair.b.size() > 0) {
    add(vocabulary.sep, 1);
  }

  const MaskedTokens masked = mask_tokens(tokens, vocabulary, MaskingStyle::bert, mask_prob,
                                          mask_prob * static_cast<double>(target), random);
  sample.num_tokens = static_cast<std::int32_t>(tokens.size());
  sample.tokens = masked.tokens;
  sample.tokens.resize(seq_length, vocabulary.pad);
  sample.types.resize(seq_length, vocabulary.pad);
  sample.padding_mask.assign(tokens.size(), 1);
  sample.padding_mask.resize(seq_length, 0);
  sample.labels.assign(seq_length, -1);
  sample.loss_mask.assign(seq_length, 0);
  for (const auto& span : masked.spans) {
    for (const std::int64_t i : span) {
      sample.labels[i] = tokens[i];
      sample.loss_mask[i] = 1;
    }
  }
  return sample;
}

}  // namespace bloomery
