// Vectors as wide as the instruction-set level a *_cpu.cpp file is compiled for: arithmetic,
// comparisons and `mask ? a : b` are the compiler's own. For the few loops where registers must be
// blocked by hand; everything else is left to the auto-vectoriser.
#pragma once

#include <cstdint>
#include <cstring>

#include "base/round_up.h"

namespace bloomery {
// Differs between the levels, so it must not be shared between their object files.
namespace {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

// kLanes elements of type T.
template <class T, int kLanes>
struct VectorOf {
  typedef T type __attribute__((vector_size(kLanes * sizeof(T))));
};

template <class T>
constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));
template <class T>
using Vector = typename VectorOf<T, kLanes<T>>::type;

template <class T>
[[gnu::always_inline]] inline Vector<T> load_vector(const T* from) {
  Vector<T> value;
  std::memcpy(&value, from, sizeof value);
  return value;
}
template <class T>
[[gnu::always_inline]] inline void store_vector(T* to, Vector<T> value) {
  std::memcpy(to, &value, sizeof value);
}

}  // namespace
}  // namespace bloomery
