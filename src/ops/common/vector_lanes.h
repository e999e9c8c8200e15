// Numbers of a storage type as one vector of what arithmetic happens in, as wide as the level has.
// For *_cpu.cpp files only.
#pragma once

#include "ops/common/convert.h"
#include "ops/common/simd.h"

namespace bloomery {
namespace {

template <class T>
[[gnu::always_inline]] inline Vector<Accumulator<T>> load_lanes(const T* from) {
  using Real = Accumulator<T>;
  alignas(kVectorBytes) Real numbers[kLanes<Real>];
  for (int lane = 0; lane < kLanes<Real>; ++lane) {
    numbers[lane] = load(from + lane);
  }
  return load_vector(numbers);
}

}  // namespace
}  // namespace bloomery
