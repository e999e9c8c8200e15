#include <cmath>

#include "ops/attention/attention_merge.h"
#include "ops/common/convert.h"

namespace bloomery {
namespace {

// The weight of what was there in the new sum, whose log-sum-exp is left in `lse`.
template <class Sum>
Sum joined(Sum& lse, Sum other) {
  if (other == -INFINITY) {
    return 1;
  }
  if (lse == -INFINITY) {
    lse = other;
    return 0;
  }
  const Sum kept = 1 / (1 + std::exp(other - lse));
  const Sum larger = std::max(lse, other), smaller = std::min(lse, other);
  lse = larger + std::log1p(std::exp(smaller - larger));
  return kept;
}

template <class Real, class Sum>
void merge_row(const AttentionMerge& k, std::int64_t query, const Real* out, const Sum* lse,
               Sum* sum, Sum* sum_lse) {
  for (std::int64_t head = 0; head < k.num_heads; ++head) {
    Sum& total = sum_lse[head * k.length + k.first + query];
    if (k.start) {
      total = -INFINITY;
    }
    const Sum kept = joined(total, lse[head * k.num_queries + query]);
    const Real* const from = out + (query * k.num_heads + head) * k.head_dim;
    Sum* const to = sum + ((k.first + query) * k.num_heads + head) * k.head_dim;
    for (std::int64_t c = 0; c < k.head_dim; ++c) {
      const Sum before = k.start ? Sum(0) : to[c];
      to[c] = kept * before + (1 - kept) * static_cast<Sum>(load(from + c));
    }
  }
}

}  // namespace

template <>
void run(ThisCpu, Stream& stream, const AttentionMerge& k) {
  constexpr std::int64_t kGrain = 8;
  dispatch_floating(k.out.dtype, [&](auto type) {
    using Real = typename decltype(type)::type;
    using Sum = Accumulator<Real>;
    stream.device().pool().for_ranges(k.num_queries, kGrain,
                                      [&](std::int64_t begin, std::int64_t end) {
                                        for (std::int64_t query = begin; query < end; ++query) {
                                          merge_row(k, query, k.out.as<Real>(), k.lse.as<Sum>(),
                                                    k.sum.as<Sum>(), k.sum_lse.as<Sum>());
                                        }
                                      });
  });
}

}  // namespace bloomery
