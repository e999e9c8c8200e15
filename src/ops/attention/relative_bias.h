// T5's bias of attention scores: a learned number for each head and bucket of distances between key
// and query. The kernels of attention know no buckets: they read, and give the gradient of, a bias
// by distance, which the two kernels here make of the table and lead back to it.
#pragma once

#include "autograd/context.h"
#include "device/launch.h"

namespace bloomery {

struct RelativeBias {
  Parameter* table = nullptr;       // [buckets, heads]; null: no bias
  std::int64_t first_column = 0;    // of the table: that of the first head of the call
  std::int64_t max_distance = 128;  // keys at least so far away share a bucket

  explicit operator bool() const { return table != nullptr; }
};

// Which distances (place of the key - place of the query) a bucket takes: [first, last], none where
// first > last.
struct DistanceBuckets {
  static constexpr std::int64_t kMost = 128;
  std::int32_t first[kMost], last[kMost];
  std::int32_t count = 0;

  constexpr std::int32_t bucket(std::int64_t distance) const {
    for (std::int32_t b = 0; b < count; ++b) {
      if (distance >= first[b] && distance <= last[b]) {
        return b;
      }
    }
    return 0;
  }
};
// T5's rule: one bucket for each small distance, then ever wider ones up to max_distance. Both ways
// in halves of the buckets, or towards earlier keys only (later ones then count as distance 0).
DistanceBuckets distance_buckets(std::int64_t num_buckets, std::int64_t max_distance,
                                 bool bidirectional);

// A bias by distance is [heads, 2 * reach + 1] in the accumulation dtype; farther keys have that of
// the reach.
constexpr std::int64_t distance_index(std::int64_t distance, std::int64_t reach) {
  return (distance < -reach ? -reach : distance > reach ? reach : distance) + reach;
}

// The bias by distance of `num_heads` heads, up to max_distance, divided by `scale`; null without
// one.
Tensor bias_by_distance(Stream& stream, const char* op, const RelativeBias& bias,
                        std::int64_t num_heads, bool causal, float scale);
// Adds to the gradient of the table what the gradient of bias_by_distance gives; a null tensor
// counts as zeros.
void bias_gradient(Tape& tape, const RelativeBias& bias, bool causal, float scale,
                   const Tensor& grad);

// by_distance[h, i] = table[bucket of i, first_column + h] / scale.
struct SpreadBias {
  DistanceBuckets buckets;
  std::int64_t first_column = 0;
  float scale = 1;
  ConstView table;
  View by_distance;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const SpreadBias&);
void run(OnCuda, Stream&, const SpreadBias&);

// table[b, first_column + h] (+)= sum of by_distance[h, i] over the distances i of bucket b,
// divided by scale; without `add` other columns become zero. Both in the accumulation dtype.
struct GatherBias {
  DistanceBuckets buckets;
  std::int64_t first_column = 0;
  float scale = 1;
  ConstView by_distance;
  View table;
  bool add = false;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const GatherBias&);
void run(OnCuda, Stream&, const GatherBias&);

}  // namespace bloomery
