#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "ops/cache/cached_attention.h"
#include "ops/common/vector_lanes.h"

namespace bloomery {
namespace {

constexpr std::int64_t kKeyTile = 64;

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

// One query over the keys of its slot: softmax tile after tile, with a running maximum.
template <class T>
class QueryPass {
 public:
  using Real = Accumulator<T>;

  explicit QueryPass(std::int64_t head_dim)
      : head_dim_(head_dim), query_(head_dim), out_(head_dim) {}

  void start(const T* query, Real scale) {
    for (std::int64_t c = 0; c < head_dim_; ++c) {
      query_[c] = load(query + c) * scale;
    }
    std::fill(out_.begin(), out_.end(), Real(0));
    maximum_ = -std::numeric_limits<Real>::infinity();
    sum_ = 0;
  }

  // bias(j) is added to the score of key j.
  template <class Bias>
  void add_tile(const T* keys, const T* values, std::int64_t stride, std::int64_t count,
                const Bias& bias) {
    Real scores[kKeyTile];
    Real highest = maximum_;
    for (std::int64_t j = 0; j < count; ++j) {
      scores[j] = dot(query_.data(), keys + j * stride, head_dim_) + bias(j);
      highest = std::max(highest, scores[j]);
    }
    const Real rescale = std::exp(maximum_ - highest);
    maximum_ = highest;
    sum_ *= rescale;
    for (Real& x : out_) {
      x *= rescale;
    }
    for (std::int64_t j = 0; j < count; ++j) {
      const Real p = std::exp(scores[j] - highest);
      const T* const value = values + j * stride;
      sum_ += p;
      for (std::int64_t c = 0; c < head_dim_; ++c) {
        out_[c] += p * load(value + c);
      }
    }
  }

  void finish(T* to) const {
    for (std::int64_t c = 0; c < head_dim_; ++c) {
      store(to + c, out_[c] / sum_);
    }
  }

 private:
  std::int64_t head_dim_;
  std::vector<Real> query_, out_;
  Real maximum_ = 0, sum_ = 0;
};

// All queries of one sequence and group.
template <class T>
void attend(const CachedAttention& k, std::int64_t sequence, std::int64_t group) {
  const CacheProblem& p = k.problem;
  const std::int64_t slot = p.places.slots[sequence];
  const std::int64_t length = p.places.lengths[sequence], count = p.places.counts[sequence];
  const T* const keys = k.cache.as<T>() + group * 2 * p.head_dim;
  QueryPass<T> pass(p.head_dim);
  for (std::int64_t i = 0; i < p.length; ++i) {
    const std::int64_t token = sequence * p.length + i;
    const T* const queries =
        k.qkv.as<T>() + token * p.qkv_stride() + group * (p.heads_per_group + 2) * p.head_dim;
    T* const out = k.out.as<T>() + (token * p.num_groups + group) * p.heads_per_group * p.head_dim;
    if (i >= count) {
      std::memset(static_cast<void*>(out), 0,
                  static_cast<std::size_t>(p.heads_per_group * p.head_dim) * sizeof(T));
      continue;
    }
    for (std::int64_t head = 0; head < p.heads_per_group; ++head) {
      using Real = Accumulator<T>;
      pass.start(queries + head * p.head_dim, static_cast<Real>(k.scale));
      const std::int64_t num_keys = length + i + 1, global = group * p.heads_per_group + head;
      std::int64_t end = 0;
      for (std::int64_t tile = k.first_key(num_keys); tile < num_keys; tile = end) {
        end = std::min(tile + kKeyTile, num_keys);
        if (p.places.pages != nullptr) {  // a tile lies in one page
          end = std::min(end, (tile / kCachePage + 1) * kCachePage);
        }
        const T* const first = keys + p.token(slot, tile) * p.cache_stride();
        pass.add_tile(first, first + p.head_dim, p.cache_stride(), end - tile, [&](std::int64_t j) {
          return k.bias != nullptr ? k.bias_of<Real>(global, tile + j, num_keys) : Real(0);
        });
      }
      pass.finish(out + head * p.head_dim);
    }
  }
}

}  // namespace

template <>
void run(ThisCpu, Stream& stream, const AppendToCache& k) {
  const CacheProblem& p = k.problem;
  const std::size_t size = size_of(p.dtype);
  const std::size_t pair = static_cast<std::size_t>(2 * p.head_dim) * size;
  stream.device().pool().for_each(p.num_sequences, [&](std::int64_t sequence) {
    for (std::int64_t i = 0; i < p.places.counts[sequence]; ++i) {
      const std::int64_t token = sequence * p.length + i;
      const std::int64_t place = p.token(p.places.slots[sequence], p.places.lengths[sequence] + i);
      for (std::int64_t group = 0; group < p.num_groups; ++group) {
        const std::int64_t from =
            token * p.qkv_stride() +
            (group * (p.heads_per_group + 2) + p.heads_per_group) * p.head_dim;
        std::memcpy(
            k.cache.as<char>() + static_cast<std::size_t>(place * p.num_groups + group) * pair,
            k.qkv.as<char>() + static_cast<std::size_t>(from) * size, pair);
      }
    }
  });
}

template <>
void run(ThisCpu, Stream& stream, const GatherFromCache& k) {
  const CacheProblem& p = k.problem;
  const std::size_t bytes = static_cast<std::size_t>(p.cache_stride()) * size_of(p.dtype);
  stream.device().pool().for_each(k.kv.rows(), [&](std::int64_t i) {
    const auto from = static_cast<std::size_t>(p.token(p.places.slots[0], i));
    std::memcpy(k.kv.as<char>() + static_cast<std::size_t>(i) * bytes,
                k.cache.as<char>() + from * bytes, bytes);
  });
}

template <>
void run(ThisCpu, Stream& stream, const CachedAttention& k) {
  const CacheProblem& p = k.problem;
  run(ThisCpu{}, stream, AppendToCache{.problem = p, .qkv = k.qkv, .cache = k.cache});
  dispatch_floating(p.dtype, [&](auto tag) {
    stream.device().pool().for_each(p.num_sequences * p.num_groups, [&](std::int64_t task) {
      attend<typename decltype(tag)::type>(k, task / p.num_groups, task % p.num_groups);
    });
  });
}

}  // namespace bloomery
