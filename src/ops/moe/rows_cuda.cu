#include "device/cuda_check.h"
#include "ops/common/dispatch_cuda.cuh"
#include "ops/moe/rows.h"

namespace bloomery {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / kWarpSize;

// A warp per row, packs of kCount elements.
template <int kCount, class T>
__global__ void gather_rows(const T* x, const std::int32_t* index, const float* factors, T* y,
                            std::int64_t rows, int columns, int per_row) {
  const std::int64_t row = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarpSize;
  if (row >= rows) {
    return;
  }
  const int from = index[row];
  const T* const source = x + std::int64_t{from < 0 ? 0 : from / per_row} * columns;
  const float factor = from >= 0 && factors != nullptr ? factors[from] : 1.0f;
  for (int c = threadIdx.x % kWarpSize * kCount; c < columns; c += kWarpSize * kCount) {
    Pack<T, kCount> pack;
    if (from < 0) {
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        pack[i] = from_float<T>(0.0f);
      }
    } else {
      pack = load_pack<kCount>(source + c);
      if (factors != nullptr) {
#pragma unroll
        for (int i = 0; i < kCount; ++i) {
          pack[i] = from_float<T>(factor * to_float(pack[i]));
        }
      }
    }
    store_pack(y + row * columns + c, pack);
  }
}

template <int kCount, class T>
__global__ void sum_rows(const T* x, const std::int32_t* index, const float* weights, T* y,
                         std::int64_t tokens, int columns, int choices, bool add) {
  const std::int64_t t = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarpSize;
  if (t >= tokens) {
    return;
  }
  for (int c = threadIdx.x % kWarpSize * kCount; c < columns; c += kWarpSize * kCount) {
    float sums[kCount] = {};
    if (add) {
      const Pack<T, kCount> earlier = load_pack<kCount>(y + t * columns + c);
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        sums[i] = to_float(earlier[i]);
      }
    }
    for (int j = 0; j < choices; ++j) {
      const int row = index[t * choices + j];
      if (row < 0) {
        continue;
      }
      const float weight = weights != nullptr ? weights[t * choices + j] : 1.0f;
      const Pack<T, kCount> pack = load_pack<kCount>(x + std::int64_t{row} * columns + c);
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        sums[i] += weight * to_float(pack[i]);
      }
    }
    Pack<T, kCount> result;
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      result[i] = from_float<T>(sums[i]);
    }
    store_pack(y + t * columns + c, result);
  }
}

template <int kCount, class T>
__global__ void row_dots(const T* a, const T* b, const std::int32_t* index, float* y,
                         std::int64_t tokens, int columns, int choices, bool add) {
  const std::int64_t t = std::int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarpSize;
  if (t >= tokens) {
    return;
  }
  const int lane = threadIdx.x % kWarpSize;
  for (int j = 0; j < choices; ++j) {
    const int row = index[t * choices + j];
    float sum = 0;
    for (int c = lane * kCount; row >= 0 && c < columns; c += kWarpSize * kCount) {
      const Pack<T, kCount> left = load_pack<kCount>(a + t * columns + c);
      const Pack<T, kCount> right = load_pack<kCount>(b + std::int64_t{row} * columns + c);
#pragma unroll
      for (int i = 0; i < kCount; ++i) {
        sum += to_float(left[i]) * to_float(right[i]);
      }
    }
    sum = warp_sum(sum);
    if (lane == 0) {
      float& result = y[t * choices + j];
      result = add ? result + sum : sum;
    }
  }
}

// Calls body(TypeTag, whether packs of 16 bytes fit) for rows that begin at these addresses.
template <class Body>
void dispatch_packs(DType dtype, std::int64_t columns, std::initializer_list<const void*> pointers,
                    Body&& body) {
  dispatch_device(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    bool aligned = columns % kPackSize<T> == 0;
    for (const void* pointer : pointers) {
      aligned = aligned && reinterpret_cast<std::uintptr_t>(pointer) % 16 == 0;
    }
    body(tag, aligned);
  });
}

}  // namespace

void run(OnCuda, Stream& stream, const GatherRows& k) {
  const std::int64_t rows = k.y.rows();
  if (rows == 0) {
    return;
  }
  dispatch_packs(k.x.dtype, k.y.columns(), {k.x.data, k.y.data}, [&](auto tag, bool aligned) {
    using T = typename decltype(tag)::type;
    const auto kernel = aligned ? gather_rows<kPackSize<T>, T> : gather_rows<1, T>;
    kernel<<<num_blocks(rows, kWarps), kThreads, 0, cuda_stream(stream)>>>(
        k.x.as<T>(), k.index.as<std::int32_t>(), k.factors.as<float>(), k.y.as<T>(), rows,
        static_cast<int>(k.y.columns()), static_cast<int>(k.per_row));
    check_launch("gather_rows");
  });
}

void run(OnCuda, Stream& stream, const SumRows& k) {
  const std::int64_t tokens = k.index.rows();
  if (tokens == 0) {
    return;
  }
  dispatch_packs(k.x.dtype, k.y.columns(), {k.x.data, k.y.data}, [&](auto tag, bool aligned) {
    using T = typename decltype(tag)::type;
    const auto kernel = aligned ? sum_rows<kPackSize<T>, T> : sum_rows<1, T>;
    kernel<<<num_blocks(tokens, kWarps), kThreads, 0, cuda_stream(stream)>>>(
        k.x.as<T>(), k.index.as<std::int32_t>(), k.weights.as<float>(), k.y.as<T>(), tokens,
        static_cast<int>(k.y.columns()), static_cast<int>(k.index.columns()), k.add);
    check_launch("sum_rows");
  });
}

void run(OnCuda, Stream& stream, const RowDots& k) {
  const std::int64_t tokens = k.index.rows();
  if (tokens == 0) {
    return;
  }
  dispatch_packs(k.a.dtype, k.a.columns(), {k.a.data, k.b.data}, [&](auto tag, bool aligned) {
    using T = typename decltype(tag)::type;
    const auto kernel = aligned ? row_dots<kPackSize<T>, T> : row_dots<1, T>;
    kernel<<<num_blocks(tokens, kWarps), kThreads, 0, cuda_stream(stream)>>>(
        k.a.as<T>(), k.b.as<T>(), k.index.as<std::int32_t>(), k.y.as<float>(), tokens,
        static_cast<int>(k.a.columns()), static_cast<int>(k.index.columns()), k.add);
    check_launch("row_dots");
  });
}

}  // namespace bloomery
