#include "ops/common/convert.h"
#include "ops/sampling/token_choice.h"

namespace bloomery {

template <>
void run(ThisCpu, Stream& stream, const SampleTokens& k) {
  const std::int64_t words = occurred_words(k.vocabulary);
  stream.device().pool().for_each(k.count, [&](std::int64_t i) {
    if (k.active[i] == 0) {
      return;
    }
    const std::int64_t row = k.logit_rows != nullptr ? k.logit_rows[i] : i;
    std::vector<float> logits(static_cast<std::size_t>(k.vocabulary));
    dispatch_floating(k.logits.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T* const from = k.logits.as<T>() + row * k.logits.columns();
      for (std::size_t c = 0; c < logits.size(); ++c) {
        logits[c] = static_cast<float>(static_cast<Accumulator<T>>(from[c]));
      }
    });
    std::span<std::uint32_t> occurred;
    if (k.occurred != nullptr) {
      occurred = {k.occurred + i * words, static_cast<std::size_t>(words)};
    }
    std::int32_t& drawn = k.drawn[i];
    const Drawn choice =
        choose_token(logits, occurred, k.options, k.keys[i], static_cast<std::uint64_t>(drawn));
    ++drawn;
    if (k.occurred != nullptr) {
      occurred[static_cast<std::size_t>(choice.token) / 32] |= 1u << (choice.token % 32);
    }
    k.tokens[i] = choice.token;
    k.log_probabilities[i] = choice.log_probability;
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
