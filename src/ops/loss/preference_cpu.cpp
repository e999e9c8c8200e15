#include "ops/loss/preference_pair.h"
#include "ops/loss/rows_cpu.h"

namespace bloomery {

template <>
void run(ThisCpu, Stream&, const AnswerSums& k) {
  const std::int64_t sequences = k.sums.columns(), length = k.losses.numel() / sequences;
  dispatch_sum(k.sums.dtype, [&](auto tag) {
    using Real = typename decltype(tag)::type;
    for (std::int64_t s = 0; s < sequences; ++s) {
      double loss = 0, tokens = 0;
      for (std::int64_t t = s * length; t < (s + 1) * length; ++t) {
        if (const float mask = mask_at(k.mask, t); mask != 0.0f) {
          loss += double{mask} * static_cast<double>(k.losses.as<Real>()[t]);
          tokens += mask;
        }
      }
      k.sums.as<Real>()[s] = static_cast<Real>(-loss);
      k.sums.as<Real>()[sequences + s] = static_cast<Real>(tokens);
    }
  });
}

template <>
void run(ThisCpu, Stream&, const PreferencePairs& k) {
  const std::int64_t sequences = k.weights.numel();
  dispatch_sum(k.sums.dtype, [&](auto tag) {
    using Real = typename decltype(tag)::type;
    double figures[kNumPreferenceFigures] = {};
    for (std::int64_t pair = 0; pair < sequences / 2; ++pair) {
      add_pair(k.options, k.sums.as<Real>(), k.reference.as<float>(), sequences, pair, figures,
               k.weights.as<Real>());
    }
    for (int i = 0; i < kNumPreferenceFigures; ++i) {
      k.figures.as<Real>()[i] =
          static_cast<Real>(figures[i] * k.share * 2 / static_cast<double>(sequences));
    }
  });
}

template <>
void run(ThisCpu, Stream&, const AnswerWeights& k) {
  const std::int64_t sequences = k.weights.numel(), length = k.tokens.numel() / sequences;
  dispatch_sum(k.weights.dtype, [&](auto tag) {
    using Real = typename decltype(tag)::type;
    for (std::int64_t t = 0; t < k.tokens.numel(); ++t) {
      k.tokens.as<float>()[t] =
          mask_at(k.mask, t) * static_cast<float>(k.weights.as<Real>()[t / length]);
    }
  });
}

}  // namespace bloomery
