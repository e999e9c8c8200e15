// Eight neighbouring elements of a row in registers, moved in 16-byte accesses: one for two-byte
// types, two for fp32. Eight channels are also one random block of dropout.
#pragma once

#include "device/warp.cuh"

namespace bloomery {

inline constexpr int kOctet = 8;

template <class T>
struct Octet {
  static constexpr int kPer = kPackSize<T>;
  Pack<T, kPer> packs[kOctet / kPer];

  __device__ __forceinline__ float operator[](int i) const {
    return to_float(packs[i / kPer][i % kPer]);
  }
  __device__ __forceinline__ void set(int i, float value) {
    packs[i / kPer][i % kPer] = from_float<T>(value);
  }
};

template <class T>
__device__ __forceinline__ Octet<T> load_octet(const T* from) {
  Octet<T> octet;
#pragma unroll
  for (int i = 0; i < kOctet / Octet<T>::kPer; ++i) {
    octet.packs[i] = load_pack<Octet<T>::kPer>(from + i * Octet<T>::kPer);
  }
  return octet;
}
template <class T>
__device__ __forceinline__ Octet<T> zero_octet() {
  Octet<T> octet;
#pragma unroll
  for (int i = 0; i < kOctet; ++i) {
    octet.set(i, 0.0f);
  }
  return octet;
}
template <class T>
__device__ __forceinline__ void store_octet(T* to, const Octet<T>& octet) {
#pragma unroll
  for (int i = 0; i < kOctet / Octet<T>::kPer; ++i) {
    store_pack(to + i * Octet<T>::kPer, octet.packs[i]);
  }
}

// Whether rows of `columns` elements that start here can be read by octets. Null pointers pass.
template <class... Pointers>
bool fits_octets(std::int64_t columns, const Pointers*... rows) {
  return columns % kOctet == 0 && ((reinterpret_cast<std::uintptr_t>(rows) % 16 == 0) && ...);
}

}  // namespace bloomery
