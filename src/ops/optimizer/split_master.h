// An fp32 weight as two halves of 16 bits: its rounding to bf16, which is the value that a model
// computes with, and what the rounding left. Together they are the weight, bit for bit, so that
// master weights take two bytes beside the values instead of four.
//
// Ties round away from zero: with ties to even two weights would have the same halves.
#pragma once

#include <bit>
#include <cstdint>

#include "device/launch.h"
#include "tensor/tensor.h"

namespace bloomery {

// How the exact weights of a range are kept beside its values, with which a model computes.
enum class WeightForm : std::uint8_t {
  exact,   // the values are the weights
  master,  // a tensor of their own, in fp32; values are its rounding, or a copy elsewhere
  split,   // bf16 values and what their rounding left are the halves
};

struct SplitMaster {
  std::uint16_t value;  // the bits of a bf16
  std::uint16_t low;    // the bits of a signed number, to be added to those of the value
};

constexpr SplitMaster split_weight(std::uint32_t word) {
  if ((word & 0x7FFFFFFFu) > 0x7F800000u) {
    return {0x7FFF, 0};  // no number stays none
  }
  return {static_cast<std::uint16_t>((word + 0x8000u) >> 16), static_cast<std::uint16_t>(word)};
}
constexpr SplitMaster split_weight(float weight) {
  return split_weight(std::bit_cast<std::uint32_t>(weight));
}

constexpr std::uint32_t joined_bits(SplitMaster halves) {
  const auto low = static_cast<std::uint32_t>(static_cast<std::int16_t>(halves.low));
  return (std::uint32_t{halves.value} << 16) + low;
}
constexpr float join_weight(SplitMaster halves) {
  return std::bit_cast<float>(joined_bits(halves));
}

inline constexpr std::int64_t kLowHalfBytes = 2;  // of an element

// value and low half = x. Values are bf16; a low half is uint8 [kLowHalfBytes x elements], or null:
// only the values are wanted.
struct SplitWeights {
  ConstView x;  // fp32
  View value;
  View low;
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const SplitWeights&);
void run(OnCuda, Stream&, const SplitWeights&);

// y = what the halves are of.
struct JoinWeights {
  ConstView value, low;
  View y;  // fp32
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const JoinWeights&);
void run(OnCuda, Stream&, const JoinWeights&);

}  // namespace bloomery
