// Squared norm of a flat gradient and, in the same pass, whether it is finite.
//
// Squares are summed in fp64, where finite fp32 elements cannot overflow: the sum is finite if and
// only if every element is. One number therefore carries both answers, also through a sum over
// ranks. The split into partial sums depends on the size alone.
#pragma once

#include "device/launch.h"
#include "ops/optimizer/units.h"
#include "tensor/tensor.h"

namespace bloomery {

// Elements behind one partial sum.
inline constexpr std::int64_t kNormChunk = 128 * kUnitSize;

constexpr std::int64_t num_norm_partials(std::int64_t num_elements) {
  return (num_elements + kNormChunk - 1) / kNormChunk;
}

// partials[i] = sum of grad[j]^2 over chunk i. Units marked kUnitUncounted add nothing while they
// are finite, and NaN otherwise.
struct SquaredNormPartials {
  ConstView grad;        // fp32, bf16 or (CPU) fp64 [count], aligned to 16 bytes
  ConstView unit_flags;  // uint8 [num_units(count)]
  View partials;         // fp64 [num_norm_partials(count)]
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const SquaredNormPartials&);
void run(OnCuda, Stream&, const SquaredNormPartials&);

// sum[0] = the sum of all partials, in a fixed order.
struct SumPartials {
  ConstView partials;  // fp64 [n]
  View sum;            // fp64 [1]
};
template <int kLevel>
void run(OnCpu<kLevel>, Stream&, const SumPartials&);
void run(OnCuda, Stream&, const SumPartials&);

}  // namespace bloomery
