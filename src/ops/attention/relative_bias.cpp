#include "ops/attention/relative_bias.h"

#include <cmath>
#include <limits>

namespace bloomery {
namespace {

constexpr std::int32_t kAnyDistance = std::numeric_limits<std::int32_t>::max();

// Of `num_buckets` buckets for distances of one direction, in the fp32 arithmetic that models were
// trained with.
std::int64_t bucket_of(std::int64_t distance, std::int64_t num_buckets, std::int64_t max_distance) {
  const std::int64_t exact = num_buckets / 2;
  if (distance < exact) {
    return distance;
  }
  const auto ratio = static_cast<float>(distance) / static_cast<float>(exact);
  const auto range =
      static_cast<float>(std::log(static_cast<double>(max_distance) / static_cast<double>(exact)));
  const float place = std::log(ratio) / range * static_cast<float>(num_buckets - exact);
  return std::min(num_buckets - 1, exact + static_cast<std::int64_t>(place));
}

DistanceBuckets buckets_of(const char* op, const RelativeBias& bias, bool causal) {
  const std::int64_t buckets = bias.table->local_shape[0], least = causal ? 2 : 4;
  check(buckets >= least && buckets % (least / 2) == 0 && buckets <= DistanceBuckets::kMost, op,
        ": ", buckets, " buckets of relative distances; there must be ", least, " to ",
        DistanceBuckets::kMost, ", an even number where attention looks both ways");
  constexpr std::int64_t kFarthest = 1024;
  check(bias.max_distance > buckets / least && bias.max_distance <= kFarthest, op,
        ": the largest relative distance is ", bias.max_distance, ", it must be above the ",
        buckets / least, " that have buckets of their own and at most ", kFarthest);
  return distance_buckets(buckets, bias.max_distance, !causal);
}

}  // namespace

DistanceBuckets distance_buckets(std::int64_t num_buckets, std::int64_t max_distance,
                                 bool bidirectional) {
  const std::int64_t per_direction = bidirectional ? num_buckets / 2 : num_buckets;
  DistanceBuckets buckets{.count = static_cast<std::int32_t>(num_buckets)};
  std::fill_n(buckets.first, DistanceBuckets::kMost, 0);
  std::fill_n(buckets.last, DistanceBuckets::kMost, -1);
  for (std::int32_t distance = 0; distance <= max_distance; ++distance) {
    const std::int64_t b = bucket_of(distance, per_direction, max_distance);
    const std::int32_t farthest = distance == max_distance ? kAnyDistance : distance;
    buckets.last[b] = buckets.first[b] > buckets.last[b] ? -distance : buckets.last[b];
    buckets.first[b] = -farthest;
    if (bidirectional && distance > 0) {
      const std::int64_t later = per_direction + b;
      buckets.first[later] =
          buckets.first[later] > buckets.last[later] ? distance : buckets.first[later];
      buckets.last[later] = farthest;
    }
  }
  if (!bidirectional) {
    buckets.last[0] = kAnyDistance;
  }
  return buckets;
}

Tensor bias_by_distance(Stream& stream, const char* op, const RelativeBias& bias,
                        std::int64_t num_heads, bool causal, float scale) {
  if (!bias) {
    return {};
  }
  const Parameter& table = *bias.table;
  const DistanceBuckets buckets = buckets_of(op, bias, causal);
  check(bias.first_column >= 0 && bias.first_column + num_heads <= table.local_shape[1], op,
        ": heads ", bias.first_column, " to ", bias.first_column + num_heads,
        " of a relative bias that has ", table.local_shape[1]);
  Tensor by_distance = Tensor::empty(stream, accumulation_dtype(table.value.dtype()),
                                     {num_heads, 2 * bias.max_distance + 1});
  launch(stream, SpreadBias{.buckets = buckets,
                            .first_column = bias.first_column,
                            .scale = scale,
                            .table = table.value,
                            .by_distance = by_distance});
  return by_distance;
}

void bias_gradient(Tape& tape, const RelativeBias& bias, bool causal, float scale,
                   const Tensor& grad) {
  const Sink sink = tape.sink(*bias.table);
  if (grad) {
    launch(tape.stream(), GatherBias{.buckets = buckets_of("attention", bias, causal),
                                     .first_column = bias.first_column,
                                     .scale = scale,
                                     .by_distance = grad,
                                     .table = sink.target,
                                     .add = sink.add});
  } else if (!sink.add) {
    tape.stream().fill(sink.target.data(), 0, sink.target.bytes());
  }
}

}  // namespace bloomery
