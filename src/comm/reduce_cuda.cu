#include "comm/reduce.h"
#include "device/cuda_check.h"
#include "device/warp.cuh"

namespace bloomery {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 4096;

// How elements of T are held while they are combined.
template <class T>
struct Wide {
  using type = float;
  static __device__ float load(T x) { return to_float(x); }
  static __device__ T store(float x) { return from_float<T>(x); }
};
template <class T>
struct Exact {
  using type = T;
  static __device__ T load(T x) { return x; }
  static __device__ T store(T x) { return x; }
};
template <>
struct Wide<double> : Exact<double> {};
template <>
struct Wide<std::int32_t> : Exact<std::int32_t> {};
template <>
struct Wide<std::int64_t> : Exact<std::int64_t> {};

template <class W, Reduce kReduce>
__device__ __forceinline__ W combine(W a, W b) {
  if constexpr (kReduce == Reduce::max) {
    return b > a || b != b ? b : a;  // NaN wins
  } else if constexpr (std::is_integral_v<W>) {
    using Unsigned = std::make_unsigned_t<W>;
    return static_cast<W>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  } else {
    return a + b;
  }
}

template <class T, int kCount, Reduce kReduce>
__global__ void reduce_ranks(const RankReduce k) {
  using W = typename Wide<T>::type;
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x * kCount;
  const std::int64_t start = (std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x) * kCount;
  for (std::int64_t i = start; i < k.count; i += step) {
    W result[kCount];
    for (int rank = 0; rank < k.num_inputs; ++rank) {
      const auto in = load_pack<kCount>(static_cast<const T*>(k.inputs[rank]) + i);
#pragma unroll
      for (int j = 0; j < kCount; ++j) {
        const W x = Wide<T>::load(in[j]);
        result[j] = rank == 0 ? x : combine<W, kReduce>(result[j], x);
      }
    }
    Pack<T, kCount> out;
#pragma unroll
    for (int j = 0; j < kCount; ++j) {
      out[j] = Wide<T>::store(result[j]);
    }
    for (int rank = 0; rank < k.num_outputs; ++rank) {
      store_pack(static_cast<T*>(k.outputs[rank]) + i, out);
    }
  }
}

bool packable(const RankReduce& k, std::int64_t pack) {
  bool aligned = k.count % pack == 0;
  for (int rank = 0; rank < k.num_inputs; ++rank) {
    aligned = aligned && reinterpret_cast<std::uintptr_t>(k.inputs[rank]) % 16 == 0;
  }
  for (int rank = 0; rank < k.num_outputs; ++rank) {
    aligned = aligned && reinterpret_cast<std::uintptr_t>(k.outputs[rank]) % 16 == 0;
  }
  return aligned;
}

template <class T, Reduce kReduce>
void launch_reduce(Stream& stream, const RankReduce& k) {
  constexpr int kPack = kPackSize<T>;
  const bool packed = packable(k, kPack);
  const std::int64_t per_block = kThreads * (packed ? kPack : 1);
  const std::int64_t blocks = (k.count + per_block - 1) / per_block;
  const auto grid = static_cast<unsigned int>(blocks < kMaxBlocks ? blocks : kMaxBlocks);
  const auto kernel = packed ? reduce_ranks<T, kPack, kReduce> : reduce_ranks<T, 1, kReduce>;
  kernel<<<grid, kThreads, 0, cuda_stream(stream)>>>(k);
  check_launch("reduce_ranks");
}

template <class T>
void reduce(Stream& stream, const RankReduce& k) {
  if (k.reduce == Reduce::sum) {
    launch_reduce<T, Reduce::sum>(stream, k);
  } else {
    launch_reduce<T, Reduce::max>(stream, k);
  }
}

}  // namespace

void run(OnCuda, Stream& stream, const RankReduce& k) {
  if (k.count == 0) {
    return;
  }
  switch (k.dtype) {
    case DType::fp32:
      return reduce<float>(stream, k);
    case DType::bf16:
      return reduce<__nv_bfloat16>(stream, k);
    case DType::fp16:
      return reduce<__half>(stream, k);
    case DType::fp64:
      return reduce<double>(stream, k);
    case DType::int32:
      return reduce<std::int32_t>(stream, k);
    case DType::int64:
      return reduce<std::int64_t>(stream, k);
    case DType::uint8:
      break;
  }
  throw Error(concat("reduction of ", name(k.dtype), " is not available"));
}

}  // namespace bloomery
