#include "ops/optimizer/split_master.h"

namespace bloomery {
namespace {

constexpr std::int64_t kGrain = 16384;

}  // namespace

template <>
void run(ThisCpu, Stream& stream, const SplitWeights& k) {
  const auto* x = k.x.as<float>();
  auto* value = k.value.as<std::uint16_t>();
  auto* low = k.low.as<std::uint16_t>();
  stream.device().pool().for_ranges(k.x.numel(), kGrain, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      value[i] = split_weight(x[i]).value;
    }
    for (std::int64_t i = begin; low != nullptr && i < end; ++i) {
      low[i] = split_weight(x[i]).low;
    }
  });
}

template <>
void run(ThisCpu, Stream& stream, const JoinWeights& k) {
  const auto* value = k.value.as<std::uint16_t>();
  const auto* low = k.low.as<std::uint16_t>();
  auto* y = k.y.as<float>();
  stream.device().pool().for_ranges(k.y.numel(), kGrain, [=](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      y[i] = join_weight({value[i], low[i]});
    }
  });
}

}  // namespace bloomery
