// Rows of a storage type as 64-byte vectors of what arithmetic happens in, for CPU kernels whose
// loops carry sums (which the compiler may not reorder by itself) or convert fp16. The vectors are
// the compiler's own (GCC and Clang), cut into what each instruction-set level has. Everything has
// internal linkage or is inlined: each level needs its own code.
#pragma once

#include <cstring>

#include "tensor/dtype.h"

#if defined(__F16C__) || defined(__AVX512BF16__)
#include <immintrin.h>
#endif

// Vectors wider than a level's registers are passed between functions that are always inlined.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace bloomery {

template <class Sum>
struct LanesOf {
  typedef Sum type __attribute__((vector_size(64)));
};
template <class Sum>
using Lanes = typename LanesOf<Sum>::type;
template <class Sum>
inline constexpr int kRowLanes = 64 / static_cast<int>(sizeof(Sum));

// How many lanes of a vector lie inside the row: all of them, or the first `count`.
struct AllLanes {};
struct SomeLanes {
  int count;
};

// Calls body(first element, AllLanes or SomeLanes) over a row.
template <class Sum, class Body>
[[gnu::always_inline]] static inline void for_lanes(std::int64_t columns, const Body& body) {
  std::int64_t i = 0;
  for (; i + kRowLanes<Sum> <= columns; i += kRowLanes<Sum>) {
    body(i, AllLanes{});
  }
  if (i < columns) {
    body(i, SomeLanes{static_cast<int>(columns - i)});
  }
}

template <class T>
[[gnu::always_inline]] static inline Lanes<Accumulator<T>> load_lanes(const T* from,
                                                                      AllLanes = {}) {
  Lanes<Accumulator<T>> lanes;
  if constexpr (std::is_same_v<T, Accumulator<T>>) {
    std::memcpy(&lanes, from, sizeof lanes);
  } else if constexpr (std::is_same_v<T, bfloat16>) {
    typedef std::uint16_t Halves __attribute__((vector_size(32)));
    Halves halves;
    std::memcpy(&halves, from, sizeof halves);
    const auto words = __builtin_convertvector(halves, Lanes<std::uint32_t>) << 16;
    std::memcpy(&lanes, &words, sizeof lanes);
  } else {
#if defined(__F16C__)
    const auto* halves = reinterpret_cast<const __m128i*>(from);
    const __m256 wide[2] = {_mm256_cvtph_ps(_mm_loadu_si128(halves)),
                            _mm256_cvtph_ps(_mm_loadu_si128(halves + 1))};
    std::memcpy(&lanes, wide, sizeof lanes);
#else
    for (int i = 0; i < kRowLanes<float>; ++i) {
      lanes[i] = static_cast<float>(from[i]);
    }
#endif
  }
  return lanes;
}

// Rounds to nearest even as the storage types do. Where the processor itself converts to bf16,
// numbers below the normal range become zeros and a NaN keeps its sign and upper bits.
template <class T>
[[gnu::always_inline]] static inline void store_lanes(T* to, const Lanes<Accumulator<T>>& lanes,
                                                      AllLanes = {}) {
  if constexpr (std::is_same_v<T, Accumulator<T>>) {
    std::memcpy(to, &lanes, sizeof lanes);
  } else if constexpr (std::is_same_v<T, bfloat16>) {
#if defined(__AVX512BF16__)
    const __m256bh halves = _mm512_cvtneps_pbh(std::bit_cast<__m512>(lanes));
    std::memcpy(to, &halves, sizeof halves);
#else
    typedef std::uint16_t Halves __attribute__((vector_size(32)));
    Lanes<std::uint32_t> words;
    std::memcpy(&words, &lanes, sizeof words);
    const Lanes<std::uint32_t> rounded = (words + 0x7FFFu + ((words >> 16) & 1u)) >> 16;
    const auto nan = (words & 0x7FFFFFFFu) > 0x7F800000u;
    const Lanes<std::uint32_t> result = nan ? Lanes<std::uint32_t>{} + 0x7FFFu : rounded;
    const auto halves = __builtin_convertvector(result, Halves);
    std::memcpy(to, &halves, sizeof halves);
#endif
  } else {
#if defined(__F16C__)
    __m256 wide[2];
    std::memcpy(wide, &lanes, sizeof wide);
    auto* halves = reinterpret_cast<__m128i*>(to);
    _mm_storeu_si128(halves, _mm256_cvtps_ph(wide[0], _MM_FROUND_TO_NEAREST_INT));
    _mm_storeu_si128(halves + 1, _mm256_cvtps_ph(wide[1], _MM_FROUND_TO_NEAREST_INT));
#else
    for (int i = 0; i < kRowLanes<float>; ++i) {
      to[i] = T(lanes[i]);
    }
#endif
  }
}

// The rest of a row: lanes outside it are zero when loaded and not stored.
template <class T>
[[gnu::always_inline]] static inline Lanes<Accumulator<T>> load_lanes(const T* from,
                                                                      SomeLanes part) {
  unsigned char buffer[kRowLanes<Accumulator<T>> * sizeof(T)] = {};
  std::memcpy(buffer, from, static_cast<std::size_t>(part.count) * sizeof(T));
  return load_lanes(reinterpret_cast<const T*>(buffer));
}
template <class T>
[[gnu::always_inline]] static inline void store_lanes(T* to, const Lanes<Accumulator<T>>& lanes,
                                                      SomeLanes part) {
  unsigned char buffer[kRowLanes<Accumulator<T>> * sizeof(T)];
  store_lanes(reinterpret_cast<T*>(buffer), lanes);
  std::memcpy(to, buffer, static_cast<std::size_t>(part.count) * sizeof(T));
}

template <class T>
static inline void store_row(const Accumulator<T>* from, std::int64_t columns, T* to) {
  for_lanes<Accumulator<T>>(columns, [=](std::int64_t c, auto part) {
    store_lanes(to + c, load_lanes(from + c, part), part);
  });
}

// Zero in the lanes outside the row.
template <class Sum>
[[gnu::always_inline]] static inline Lanes<Sum> inside(const Lanes<Sum>& lanes, AllLanes) {
  return lanes;
}
template <class Sum>
[[gnu::always_inline]] static inline Lanes<Sum> inside(const Lanes<Sum>& lanes, SomeLanes part) {
  Lanes<Sum> result{};
  for (int i = 0; i < part.count; ++i) {
    result[i] = lanes[i];
  }
  return result;
}

// Sum of the lanes, pairwise: the upper half to the lower one, again and again.
template <class Sum>
[[gnu::always_inline]] static inline Sum sum_of_lanes(const Lanes<Sum>& lanes) {
  if constexpr (kRowLanes<Sum> == 16) {
    const auto eight = __builtin_shufflevector(lanes, lanes, 0, 1, 2, 3, 4, 5, 6, 7) +
                       __builtin_shufflevector(lanes, lanes, 8, 9, 10, 11, 12, 13, 14, 15);
    const auto four = __builtin_shufflevector(eight, eight, 0, 1, 2, 3) +
                      __builtin_shufflevector(eight, eight, 4, 5, 6, 7);
    return (four[0] + four[2]) + (four[1] + four[3]);
  } else {
    const auto four = __builtin_shufflevector(lanes, lanes, 0, 1, 2, 3) +
                      __builtin_shufflevector(lanes, lanes, 4, 5, 6, 7);
    return (four[0] + four[2]) + (four[1] + four[3]);
  }
}

}  // namespace bloomery
