// Eight neighbouring elements of a row in registers, moved in 16-byte accesses: one for two-byte
// types, two for fp32. They stay packed until used (two-byte elements on their own would take a
// register each). Eight channels are also one random block of dropout.
#pragma once

#include "device/warp.cuh"

namespace bloomery {

inline constexpr int kOctet = 8;

template <class T>
struct Octet {
  static constexpr int kWords = 2 * sizeof(T);  // of 32 bits
  std::uint32_t words[kWords];

  __device__ __forceinline__ float operator[](int i) const {
    if constexpr (sizeof(T) == 4) {
      return __uint_as_float(words[i]);
    } else if constexpr (std::is_same_v<T, __nv_bfloat16>) {
      return __uint_as_float(i % 2 == 0 ? words[i / 2] << 16 : words[i / 2] & 0xFFFF0000u);
    } else {
      return to_float(__ushort_as_half(static_cast<unsigned short>(words[i / 2] >> (i % 2 * 16))));
    }
  }
};

template <class T>
__device__ __forceinline__ Octet<T> to_octet(const float (&values)[kOctet]) {
  Octet<T> octet;
#pragma unroll
  for (int i = 0; i < Octet<T>::kWords; ++i) {
    if constexpr (sizeof(T) == 4) {
      octet.words[i] = __float_as_uint(values[i]);
    } else {
      const Pack<T, 2> pair{from_float<T>(values[2 * i]), from_float<T>(values[2 * i + 1])};
      octet.words[i] = reinterpret_cast<const std::uint32_t&>(pair);
    }
  }
  return octet;
}

template <class T>
__device__ __forceinline__ Octet<T> load_octet(const T* from) {
  Octet<T> octet;
#pragma unroll
  for (int i = 0; i < Octet<T>::kWords; i += 4) {
    const auto pack = load_pack<4>(reinterpret_cast<const std::uint32_t*>(from) + i);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      octet.words[i + j] = pack[j];
    }
  }
  return octet;
}
template <class T>
__device__ __forceinline__ Octet<T> zero_octet() {
  return Octet<T>{};  // zero bits are zeros in every type
}
template <class T>
__device__ __forceinline__ void store_octet(T* to, const Octet<T>& octet) {
#pragma unroll
  for (int i = 0; i < Octet<T>::kWords; i += 4) {
    Pack<std::uint32_t, 4> pack;
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      pack[j] = octet.words[i + j];
    }
    store_pack(reinterpret_cast<std::uint32_t*>(to) + i, pack);
  }
}

// Makes the compiler take the elements out of the packed registers again where it uses them next:
// without it, eight floats per octet stay alive from one pass over a row to the next.
template <class T>
__device__ __forceinline__ void keep_packed(Octet<T>& octet) {
#pragma unroll
  for (int i = 0; i < Octet<T>::kWords; ++i) {
    asm volatile("" : "+r"(octet.words[i]));
  }
}

// Whether rows of `columns` elements that start here can be read by octets. Null pointers pass.
template <class... Pointers>
bool fits_octets(std::int64_t columns, const Pointers*... rows) {
  return columns % kOctet == 0 && ((reinterpret_cast<std::uintptr_t>(rows) % 16 == 0) && ...);
}

}  // namespace bloomery
