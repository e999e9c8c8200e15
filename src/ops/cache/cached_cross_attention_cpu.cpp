#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "ops/cache/cached_cross_attention.h"
#include "ops/common/vector_lanes.h"

namespace bloomery {
namespace {

template <class T>
Accumulator<T> dot(const Accumulator<T>* a, const T* b, std::int64_t count) {
  using Real = Accumulator<T>;
  Vector<Real> lanes{};
  std::int64_t i = 0;
  for (; i + kLanes<Real> <= count; i += kLanes<Real>) {
    lanes += load_vector(a + i) * load_lanes(b + i);
  }
  Real sum = 0;
  for (int lane = 0; lane < kLanes<Real>; ++lane) {
    sum += lanes[lane];
  }
  for (; i < count; ++i) {
    sum += a[i] * load(b + i);
  }
  return sum;
}

// One head of one token: all scores, their softmax, then the values.
template <class T>
class HeadPass {
 public:
  using Real = Accumulator<T>;

  HeadPass(const CachedCrossAttention& k, std::int64_t num_keys)
      : k_(k), query_(k.head_dim), weights_(num_keys), sums_(k.head_dim) {}

  void run(const T* query, const T* keys, T* out) {
    const std::int64_t stride = k_.key_stride();
    for (std::int64_t c = 0; c < k_.head_dim; ++c) {
      query_[c] = load(query + c) * static_cast<Real>(k_.scale);
    }
    Real highest = -std::numeric_limits<Real>::infinity(), total = 0;
    for (std::size_t j = 0; j < weights_.size(); ++j) {
      weights_[j] = dot(query_.data(), keys + static_cast<std::int64_t>(j) * stride, k_.head_dim);
      highest = std::max(highest, weights_[j]);
    }
    std::ranges::fill(sums_, Real(0));
    for (std::size_t j = 0; j < weights_.size(); ++j) {
      const Real weight = std::exp(weights_[j] - highest);
      const T* const value = keys + static_cast<std::int64_t>(j) * stride + k_.head_dim;
      total += weight;
      for (std::int64_t c = 0; c < k_.head_dim; ++c) {
        sums_[c] += weight * load(value + c);
      }
    }
    for (std::int64_t c = 0; c < k_.head_dim; ++c) {
      store(out + c, sums_[c] / total);
    }
  }

 private:
  const CachedCrossAttention& k_;
  std::vector<Real> query_, weights_, sums_;
};

// All heads of a group, of the tokens of one row.
template <class T>
void attend(const CachedCrossAttention& k, std::int64_t row, std::int64_t group) {
  const std::int64_t width = k.heads_per_group * k.head_dim;
  const std::int32_t text = k.texts[k.slots[row]];
  const T* const keys =
      k.kv.as<T>() + text * k.text_length * k.key_stride() + group * 2 * k.head_dim;
  HeadPass<T> pass(k, k.text_lengths[text]);
  for (std::int64_t i = 0; i < k.length; ++i) {
    const std::int64_t at = ((row * k.length + i) * k.num_groups + group) * width;
    T* const out = k.out.as<T>() + at;
    if (i >= k.counts[row]) {
      std::memset(static_cast<void*>(out), 0, static_cast<std::size_t>(width) * sizeof(T));
      continue;
    }
    for (std::int64_t head = 0; head < k.heads_per_group; ++head) {
      pass.run(k.q.as<T>() + at + head * k.head_dim, keys, out + head * k.head_dim);
    }
  }
}

}  // namespace

template <>
void run(ThisCpu, Stream& stream, const CachedCrossAttention& k) {
  dispatch_floating(k.dtype, [&](auto tag) {
    stream.device().pool().for_each(k.num_rows * k.num_groups, [&](std::int64_t task) {
      attend<typename decltype(tag)::type>(k, task / k.num_groups, task % k.num_groups);
    });
  });
}

}  // namespace bloomery
