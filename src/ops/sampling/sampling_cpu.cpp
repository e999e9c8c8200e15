#include "ops/common/convert.h"
#include "ops/sampling/token_choice.h"

namespace bloomery {
namespace {

std::vector<float> row_of(const ConstView& logits, std::int64_t row, std::int64_t vocabulary) {
  std::vector<float> numbers(static_cast<std::size_t>(vocabulary));
  dispatch_floating(logits.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* const from = logits.as<T>() + row * logits.columns();
    for (std::size_t c = 0; c < numbers.size(); ++c) {
      numbers[c] = static_cast<float>(static_cast<Accumulator<T>>(from[c]));
    }
  });
  return numbers;
}

// After a draw: the token occurred, and what OpenAI's penalties make of it.
void note(const SampleTokens& k, std::int64_t i, std::int32_t token) {
  const std::int64_t words = occurred_words(k.vocabulary);
  if (k.occurred == nullptr) {
    return;
  }
  std::uint32_t* const seen = k.occurred + i * 2 * words + token / 32;
  const std::uint32_t bit = 1u << token % 32;
  if (k.biases != nullptr) {
    const SamplingOptions& o = k.options[i];
    k.biases[i * k.vocabulary + token] -=
        drawn_penalty(o.presence_penalty, o.frequency_penalty, (seen[words] & bit) == 0);
  }
  seen[0] |= bit;
  seen[words] |= bit;
}

}  // namespace

template <>
void run(ThisCpu, Stream& stream, const SampleTokens& k) {
  const auto words = static_cast<std::size_t>(occurred_words(k.vocabulary));
  stream.device().pool().for_each(k.count, [&](std::int64_t i) {
    if (k.active[i] == 0) {
      return;
    }
    const std::vector<float> logits =
        row_of(k.logits, k.logit_rows != nullptr ? k.logit_rows[i] : i, k.vocabulary);
    ChoiceState state{.last = k.tokens[i], .key = k.keys[i], .drawn = k.drawn[i]};
    if (k.occurred != nullptr) {
      state.occurred = {k.occurred + static_cast<std::size_t>(i) * 2 * words, words};
    }
    if (k.biases != nullptr) {
      state.biases = {k.biases + i * k.vocabulary, logits.size()};
    }
    const Drawn choice = choose_token(logits, k.options[i], state);
    note(k, i, choice.token);
    k.drawn[i] += 1;
    k.tokens[i] = choice.token;
    k.log_probabilities[i] = choice.log_probability;
  });
}

template <>
void run(ThisCpu, Stream& stream, const TopTokens& k) {
  Drawn* const out = k.ring + *k.step % k.ring_steps * k.ring_rows * TopTokens::kMost;
  stream.device().pool().for_each(k.count, [&](std::int64_t i) {
    if (k.active[i] != 0) {
      top_tokens(row_of(k.logits, k.logit_rows != nullptr ? k.logit_rows[i] : i, k.vocabulary),
                 {out + i * TopTokens::kMost, TopTokens::kMost});
    }
  });
}

template <>
void run(ThisCpu, Stream&, const AdvanceRows& k) {
  std::int32_t& step = *k.step;
  Drawn* const out = k.ring + step % k.ring_steps * k.ring_rows;
  for (std::int64_t i = 0; i < k.count; ++i) {
    advance_row(k, i, out[i]);
  }
  ++step;
}

}  // namespace bloomery
