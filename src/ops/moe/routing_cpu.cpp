#include <algorithm>
#include <vector>

#include "base/round_up.h"
#include "ops/common/convert.h"
#include "ops/moe/routing.h"
#include "ops/moe/routing_token.h"

namespace bloomery {
namespace {

// Logits, scores and gates are numbers to add up: fp32, or fp64 of the oracle.
template <class Body>
void dispatch_sums(DType dtype, Body&& body) {
  if (dtype == DType::fp64) {
    body(TypeTag<double>{});
  } else {
    body(TypeTag<float>{});
  }
}

// The tokens of one part.
template <class Real>
void choose_part(const ChooseExperts& k, std::int64_t part) {
  const std::int64_t experts = k.logits.columns(), tokens = k.logits.rows();
  const int topk = k.rule.topk;
  Real* const sums = k.parts.as<Real>() + part * (3 * experts + 1);
  std::fill_n(sums, 3 * experts + 1, Real(0));
  const std::int64_t end = std::min(tokens, (part + 1) * kTokensPerPart);
  for (std::int64_t t = part * kTokensPerPart; t < end; ++t) {
    const Real* const logits = k.logits.as<Real>() + t * experts;
    std::int32_t* const chosen = k.experts.as<std::int32_t>() + t * topk;
    const float* const draws = k.draws ? k.draws.as<float>() + t * experts : nullptr;
    moe::choose(k.rule, logits, draws, static_cast<int>(experts), chosen);
    const moe::Softmax<Real> p(logits, static_cast<int>(experts));
    for (int e = 0; e < experts; ++e) {
      sums[e] += p[e];
    }
    const int counted = k.rule.balance == Balance::first_choices ? 1 : topk;
    for (int j = 0; j < topk; ++j) {
      k.scores.as<Real>()[t * topk + j] = p[chosen[j]];
      sums[experts + chosen[j]] += j < counted ? 1 : 0;
      sums[2 * experts + chosen[j]] += 1;
    }
    sums[3 * experts] += p.logsumexp() * p.logsumexp();
  }
}

template <class Real>
void sum_routing(const SumRouting& k) {
  const std::int64_t experts = k.load.columns(), parts = k.parts.rows();
  std::vector<Real> sums(static_cast<std::size_t>(3 * experts + 1), Real(0));
  for (std::int64_t part = 0; part < parts; ++part) {
    for (std::size_t i = 0; i < sums.size(); ++i) {
      sums[i] += k.parts.as<Real>()[part * (3 * experts + 1) + static_cast<std::int64_t>(i)];
    }
  }
  const auto tokens = static_cast<Real>(k.tokens);
  const int counted = k.rule.balance == Balance::first_choices ? 1 : k.rule.topk;
  Real balance = 0, largest = 0, dropped = 0;
  const auto* const counts = sums.data() + experts;
  for (std::int64_t e = 0; e < experts; ++e) {
    balance += sums[static_cast<std::size_t>(e)] / tokens * counts[e] / tokens;
    largest = std::max(largest, counts[experts + e]);
    dropped += k.capacity > 0 ? std::max(Real(0), counts[experts + e] - Real(k.capacity)) : Real(0);
  }
  std::copy_n(counts, 2 * experts, k.load.as<Real>());
  Real* const figures = k.figures.as<Real>();
  const Real choices = tokens * Real(k.rule.topk);
  figures[kBalanceLoss] = Real(experts) * balance / Real(counted);
  figures[kZLoss] = sums.back() / tokens;
  figures[kLargestLoad] = largest * Real(experts) / choices;
  figures[kDroppedShare] = dropped / choices;
}

struct Key {
  std::uint64_t priority;
  std::int64_t pair;
};

template <class Real>
void drop_of_expert(const DropOverCapacity& k, std::int32_t expert) {
  const std::int64_t tokens = k.experts.rows(), topk = k.experts.columns();
  std::int32_t* const experts = k.experts.as<std::int32_t>();
  std::vector<Key> keys;
  for (std::int64_t pair = 0; pair < tokens * topk; ++pair) {
    if (experts[pair] != expert) {
      continue;
    }
    const std::int64_t t = pair / topk;
    const float number =
        k.priority == Priority::random        ? k.draws.as<float>()[t * k.num_experts + expert]
        : k.priority == Priority::probability ? static_cast<float>(k.scores.as<Real>()[pair])
                                              : 0.0f;
    keys.push_back(
        {moe::priority_key(k.priority, number, static_cast<int>(pair % topk), k.order(t), tokens),
         pair});
  }
  if (static_cast<std::int64_t>(keys.size()) > k.capacity) {
    const auto first_dropped = keys.begin() + k.capacity;
    std::nth_element(keys.begin(), first_dropped, keys.end(),
                     [](const Key& a, const Key& b) { return a.priority > b.priority; });
    std::for_each(first_dropped, keys.end(), [&](const Key& key) { experts[key.pair] = -1; });
  }
}

}  // namespace

template <>
void run(ThisCpu, Stream& stream, const ChooseExperts& k) {
  dispatch_sums(k.logits.dtype, [&](auto tag) {
    using Real = typename decltype(tag)::type;
    stream.device().pool().for_each(k.parts.rows(),
                                    [&](std::int64_t part) { choose_part<Real>(k, part); });
  });
}

template <>
void run(ThisCpu, Stream&, const SumRouting& k) {
  dispatch_sums(k.parts.dtype, [&](auto tag) { sum_routing<typename decltype(tag)::type>(k); });
}

// An expert at a time may change its own pairs alone, and looks at no others.
template <>
void run(ThisCpu, Stream&, const DropOverCapacity& k) {
  dispatch_sums(k.scores.dtype, [&](auto tag) {
    for (std::int64_t e = 0; e < k.num_experts; ++e) {
      drop_of_expert<typename decltype(tag)::type>(k, static_cast<std::int32_t>(e));
    }
  });
}

template <>
void run(ThisCpu, Stream&, const MakeGates& k) {
  const std::int64_t topk = k.gates.columns();
  dispatch_sums(k.gates.dtype, [&](auto tag) {
    using Real = typename decltype(tag)::type;
    for (std::int64_t t = 0; t < k.gates.rows(); ++t) {
      const std::int32_t* const experts = k.experts.as<std::int32_t>() + t * topk;
      const Real* const scores = k.scores.as<Real>() + t * topk;
      const Real sum =
          k.renormalise ? moe::gate_sum(experts, scores, static_cast<int>(topk)) : Real(1);
      for (std::int64_t j = 0; j < topk; ++j) {
        k.gates.as<Real>()[t * topk + j] = experts[j] >= 0 ? scores[j] / sum : Real(0);
      }
    }
  });
}

template <>
void run(ThisCpu, Stream& stream, const RouteBackward& k) {
  const std::int64_t experts = k.logits.columns();
  const int topk = k.rule.topk;
  dispatch_sums(k.logits.dtype, [&](auto tag) {
    using Real = typename decltype(tag)::type;
    const Real scale = k.grad_scale ? Real(*k.grad_scale.as<float>()) : Real(1);
    const auto tokens = static_cast<Real>(k.tokens);
    const int counted = k.rule.balance == Balance::first_choices ? 1 : topk;
    const moe::LossGradient<Real> losses{.load = k.load.as<Real>(),
                                         .balance = scale * Real(k.balance_coefficient) *
                                                    Real(experts) / tokens / tokens / Real(counted),
                                         .z = scale * Real(k.z_coefficient) * 2 / tokens};
    stream.device().pool().for_ranges(
        k.logits.rows(), kTokensPerPart, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t t = begin; t < end; ++t) {
            Real* const grad = k.grad_logits.as<Real>() + t * experts;
            moe::token_gradient(
                k.rule, k.logits.as<Real>() + t * experts, static_cast<int>(experts),
                k.experts.as<std::int32_t>() + t * topk,
                k.grad_gates ? k.grad_gates.as<Real>() + t * topk : nullptr, losses,
                [&](int e, Real value) { grad[e] = k.add ? grad[e] + value : value; });
          }
        });
  });
}

template <>
void run(ThisCpu, Stream&, const SortByExpert& k) {
  const std::int64_t pairs = k.experts.numel(), groups = k.offsets.numel() - 1;
  const std::int32_t* const experts = k.experts.as<std::int32_t>();
  std::int32_t* const offsets = k.offsets.as<std::int32_t>();
  std::vector<std::int64_t> next(static_cast<std::size_t>(groups) + 1, 0);
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
    if (experts[pair] >= 0) {
      ++next[static_cast<std::size_t>(experts[pair]) + 1];
    }
  }
  for (std::size_t e = 0; e < next.size(); ++e) {
    next[e] = round_up(next[e], k.alignment) + (e > 0 ? next[e - 1] : 0);
    offsets[e] = static_cast<std::int32_t>(next[e]);
  }
  std::fill_n(k.source.as<std::int32_t>(), k.source.numel(), -1);
  for (std::int64_t pair = 0; pair < pairs; ++pair) {
    const std::int32_t e = experts[pair];
    const std::int64_t row = e >= 0 ? next[static_cast<std::size_t>(e)]++ : -1;
    k.places.as<std::int32_t>()[pair] = static_cast<std::int32_t>(row);
    if (row >= 0) {
      k.source.as<std::int32_t>()[row] = static_cast<std::int32_t>(pair);
    }
  }
}

}  // namespace bloomery
