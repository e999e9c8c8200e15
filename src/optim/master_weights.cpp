#include "optim/master_weights.h"

#include <algorithm>

namespace bloomery {

MasterWeights MasterWeights::range(std::int64_t first, std::int64_t count) const {
  if (!split) {
    return {.whole = whole.range(first, {count})};
  }
  return {.split = true,
          .value = value.range(first, {count}),
          .low = low.range(first * kLowHalfBytes, {count * kLowHalfBytes})};
}

Tensor MasterWeights::numbers(Stream& stream) const {
  Tensor numbers = room(stream);
  if (split) {
    launch(stream, JoinWeights{.value = value, .low = low, .y = numbers});
  }
  return numbers;
}

Tensor MasterWeights::room(Stream& stream) const {
  return split ? Tensor::empty(stream, DType::fp32, value.shape()) : whole;
}

void MasterWeights::set(Stream& stream, const Tensor& numbers) const {
  if (split) {
    launch(stream, SplitWeights{.x = numbers, .value = value, .low = low});
  } else if (numbers.data() != whole.data()) {
    stream.copy(whole.data(), numbers.data(), whole.bytes());
  }
}

void MasterWeights::copy_to(Stream& stream, void* host) const {
  if (!split) {
    stream.copy(host, whole.data(), whole.bytes());
    return;
  }
  constexpr std::int64_t kAtOnce = 16 << 20;
  auto* to = static_cast<float*>(host);
  for (std::int64_t first = 0; first < numel(); first += kAtOnce) {
    const Tensor joined = range(first, std::min(kAtOnce, numel() - first)).numbers(stream);
    stream.copy(to + first, joined.data(), joined.bytes());
  }
}

}  // namespace bloomery
