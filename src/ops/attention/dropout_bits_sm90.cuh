// The random bits of ops/dropout/counter.h with as few integer instructions as the chip allows:
// these run at half the rate of floating-point ones and are what dropout costs.
#pragma once

#include "ops/attention/attention.h"

namespace bloomery::attention_cuda {

// The keys of all rounds, made on the host: as kernel parameters they are operands for free.
struct DropoutKeys {
  std::uint32_t k0[kDropoutRounds], k1[kDropoutRounds];

  explicit DropoutKeys(RandomKey key) {
    for (int round = 0; round < kDropoutRounds; ++round) {
      k0[round] = static_cast<std::uint32_t>(key) + 0x9E3779B9u * round;
      k1[round] = static_cast<std::uint32_t>(key >> 32) + 0xBB67AE85u * round;
    }
  }
};

// dropout_block() of one query for many blocks. Only the last word of the counter differs between
// blocks, and it takes three rounds to reach all words: what does not depend on it is kept.
struct QueryDropout {
  static constexpr std::uint32_t kM0 = 0xD2511F53u, kM1 = 0xCD9E8D57u;
  std::uint32_t first_2, second_0, third_0, third_1, third_2;  // round and word they go into

  QueryDropout() = default;
  __device__ __forceinline__ QueryDropout(const DropoutKeys& keys, std::int64_t sample,
                                          std::int32_t place, std::uint32_t head) {
    const auto bits = static_cast<std::uint64_t>(sample);
    const std::uint32_t c0 = static_cast<std::uint32_t>(bits);
    const std::uint32_t c1 = (static_cast<std::uint32_t>(bits >> 32) & 0xFFFFu) | (head << 16);
    const std::uint32_t c2 = static_cast<std::uint32_t>(place);
    first_2 = __umulhi(kM0, c0) ^ keys.k1[0];
    const std::uint32_t first_0 = __umulhi(kM1, c2) ^ c1 ^ keys.k0[0];
    second_0 = kM1 * c2 ^ keys.k0[1];
    const std::uint32_t second_2 = __umulhi(kM0, first_0) ^ kM0 * c0 ^ keys.k1[1];
    third_0 = __umulhi(kM1, second_2) ^ keys.k0[2];
    third_1 = kM1 * second_2;
    third_2 = kM0 * first_0 ^ keys.k1[2];
  }

  __device__ __forceinline__ RandomBlock operator()(const DropoutKeys& keys,
                                                    std::uint32_t block) const {
    const std::uint64_t p1 = std::uint64_t{kM1} * (first_2 ^ block);
    const std::uint64_t p0 = std::uint64_t{kM0} * (static_cast<std::uint32_t>(p1 >> 32) ^ second_0);
    RandomBlock c{third_0 ^ static_cast<std::uint32_t>(p1), third_1,
                  static_cast<std::uint32_t>(p0 >> 32) ^ third_2, static_cast<std::uint32_t>(p0)};
#pragma unroll
    for (int round = 3; round < kDropoutRounds; ++round) {
      const std::uint64_t q0 = std::uint64_t{kM0} * c[0], q1 = std::uint64_t{kM1} * c[2];
      c = RandomBlock{static_cast<std::uint32_t>(q1 >> 32) ^ c[1] ^ keys.k0[round],
                      static_cast<std::uint32_t>(q1),
                      static_cast<std::uint32_t>(q0 >> 32) ^ c[3] ^ keys.k1[round],
                      static_cast<std::uint32_t>(q0)};
    }
    return c;
  }
};

// x = 0 if a < b, or if p < 0. As a product under a predicate, since selections are integer
// instructions.
__device__ __forceinline__ void zero_if_less(float& x, std::uint32_t a, std::uint32_t b) {
  asm("{ .reg .pred p; setp.lt.u32 p, %1, %2; @p mul.f32 %0, %0, 0f00000000; }\n"
      : "+f"(x)
      : "r"(a), "r"(b));
}
__device__ __forceinline__ void zero_if_negative(float& x, float p) {
  asm("{ .reg .pred q; setp.lt.f32 q, %1, 0f00000000; @q mul.f32 %0, %0, 0f00000000; }\n"
      : "+f"(x)
      : "f"(p));
}

}  // namespace bloomery::attention_cuda
