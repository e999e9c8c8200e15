#include "samples/masking.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace bloomery {
namespace {

// The maskable positions of a sequence, word by word.
struct Words {
  std::vector<std::int64_t> positions;
  std::vector<std::size_t> starts;  // in positions, of each word

  std::size_t size() const { return starts.size(); }
  // Positions of up to `count` words from `word` on.
  std::span<const std::int64_t> from(std::size_t word, std::int64_t count) const {
    const std::size_t end = word + static_cast<std::size_t>(count);
    const std::size_t last = end < starts.size() ? starts[end] : positions.size();
    return std::span(positions).subspan(starts[word], last - starts[word]);
  }
};

Words words_of(std::span<const TokenId> tokens, const MaskingVocabulary& vocabulary) {
  Words words;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    check(tokens[i] >= 0 && tokens[i] < vocabulary.size(), "token ", tokens[i],
          " is not in the vocabulary of ", vocabulary.size(), " tokens");
    if (tokens[i] == vocabulary.cls || tokens[i] == vocabulary.sep) {
      continue;
    }
    if (words.starts.empty() || !vocabulary.continues[tokens[i]]) {
      words.starts.push_back(words.positions.size());
    }
    words.positions.push_back(static_cast<std::int64_t>(i));
  }
  return words;
}

// 1, 1/2, 1/3, normalised twice as there: once when made, once before each draw.
std::array<double, 3> short_word_probabilities() {
  std::array<double, 3> p = {1.0, 1.0 / 2, 1.0 / 3};
  for (int round = 0; round < 2; ++round) {
    const double sum = p[0] + p[1] + p[2];
    for (double& one : p) {
      one /= sum;
    }
  }
  return p;
}

std::int64_t draw_num_words(MaskingStyle style, NumpyRandom& random) {
  constexpr std::int64_t kMostT5 = 10;
  if (style == MaskingStyle::t5) {
    return std::clamp<std::int64_t>(random.geometric(0.2), 1, kMostT5);
  }
  return 1 + random.choice(short_word_probabilities());
}

TokenId replacement(TokenId token, const MaskingVocabulary& vocabulary, MaskingStyle style,
                    NumpyRandom& random) {
  if (style == MaskingStyle::t5 || random.random() < 0.8) {
    return vocabulary.mask;
  }
  if (random.random() < 0.5) {
    return token;
  }
  return static_cast<TokenId>(random.randint(0, vocabulary.size()));
}

}  // namespace

MaskedTokens mask_tokens(std::span<const TokenId> tokens, const MaskingVocabulary& vocabulary,
                         MaskingStyle style, double probability, double maximum,
                         NumpyRandom& random) {
  MaskedTokens masked{{tokens.begin(), tokens.end()}, {}};
  if (probability == 0) {
    return masked;
  }
  const double share = std::nearbyint(static_cast<double>(tokens.size()) * probability);
  const double limit = std::min(maximum, std::max(1.0, share));
  const Words words = words_of(tokens, vocabulary);
  std::vector<std::size_t> order(words.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  random.shuffle(std::span(order));

  std::vector<bool> hidden(tokens.size());
  std::size_t count = 0;
  const auto fits = [&](std::span<const std::int64_t> span) {
    return static_cast<double>(count + span.size()) <= limit;
  };
  for (const std::size_t word : order) {
    if (static_cast<double>(count) >= limit) {
      break;
    }
    std::int64_t num_words = draw_num_words(style, random);
    std::span<const std::int64_t> span = words.from(word, num_words);
    while (!fits(span) && num_words > 1) {
      span = words.from(word, --num_words);
    }
    if (!fits(span) || std::ranges::any_of(span, [&](std::int64_t i) { return hidden[i]; })) {
      continue;
    }
    for (const std::int64_t i : span) {
      hidden[i] = true;
      masked.tokens[i] = replacement(tokens[i], vocabulary, style, random);
    }
    count += span.size();
    masked.spans.emplace_back(span.begin(), span.end());
  }
  std::ranges::sort(masked.spans, {}, [](const auto& span) { return span.front(); });
  return masked;
}

MaskingVocabulary masking_vocabulary(const Tokenizer& tokenizer, std::int64_t vocab_extra_ids) {
  MaskingVocabulary vocabulary;
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id) {
    vocabulary.continues.push_back(tokenizer.piece(id).starts_with("##"));
  }
  const auto require = [&](const char* piece) {
    const std::optional<TokenId> id = tokenizer.find(piece);
    check(id.has_value(), "the vocabulary has no ", piece,
          ", which BERT and T5 samples need; use a WordPiece vocabulary");
    return *id;
  };
  const auto find_or_add = [&](const std::string& piece) {
    if (const std::optional<TokenId> id = tokenizer.find(piece)) {
      return *id;
    }
    vocabulary.continues.push_back(false);
    return static_cast<TokenId>(vocabulary.size() - 1);
  };
  vocabulary.cls = require("[CLS]");
  vocabulary.sep = require("[SEP]");
  vocabulary.mask = require("[MASK]");
  vocabulary.pad = require("[PAD]");
  vocabulary.bos = find_or_add("[BOS]");
  vocabulary.eos = find_or_add("[EOS]");
  for (std::int64_t i = 0; i < vocab_extra_ids; ++i) {
    vocabulary.sentinels.push_back(find_or_add(concat("<extra_id_", i, ">")));
  }
  return vocabulary;
}

}  // namespace bloomery
