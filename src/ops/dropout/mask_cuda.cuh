// The dropout mask on the device: a row's coordinates once, then factors by channel.
#pragma once

#include "ops/dropout/dropout.h"

namespace bloomery {

// scale for kept channels and 0 for dropped ones, of one row. Made for an empty mask too, whose
// factors must not be asked for.
class RowMask {
 public:
  __device__ __forceinline__ RowMask(const DropoutMask& mask, std::int64_t row)
      : key_(mask.key),
        threshold_(mask.threshold),
        first_block_(mask.first_block),
        scale_(dropout_scale(mask.threshold)) {
    if (mask.threshold != 0) {
      sample_ = mask.places.sample(mask.first_token + row);
      place_ = mask.places.place(mask.first_token + row);
    }
  }

  // Channels first .. first + kCount - 1, which lie in one block of eight.
  template <int kCount>
  __device__ __forceinline__ void factors(std::int64_t first, float (&out)[kCount]) const {
    const RandomBlock block = dropout_block(key_, sample_, place_, 0,
                                            first_block_ + static_cast<std::uint32_t>(first / 8));
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      const int lane = kCount == 8 ? i : static_cast<int>(first % 8) + i;
      out[i] = dropout_keeps(block, lane, threshold_) ? scale_ : 0.0f;
    }
  }
  __device__ __forceinline__ float factor(std::int64_t channel) const {
    float one[1];
    factors(channel, one);
    return one[0];
  }

 private:
  RandomKey key_;
  std::uint32_t threshold_, first_block_;
  float scale_;
  std::int64_t sample_ = 0;
  std::int32_t place_ = 0;
};

}  // namespace bloomery
