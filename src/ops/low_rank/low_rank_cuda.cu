#include "device/cuda_check.h"
#include "ops/common/dispatch_cuda.cuh"
#include "ops/low_rank/low_rank.h"

namespace bloomery {
namespace {

constexpr int kThreads = 256;

// A thread per element of `wide`.
template <class T>
__global__ void spread_rows(const T* b, T* wide, std::int64_t count, std::int64_t rank,
                            RowParts parts, float scale) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) {
    return;
  }
  const std::int64_t width = rank * parts.num_places, row = i / width, column = i % width;
  const bool own = column / rank == parts.place(row);
  wide[i] = from_float<T>(own ? scale * to_float(b[row * rank + column % rank]) : 0.0f);
}

// A thread per element of `b`.
template <class From, class To>
__global__ void collect_rows(const From* wide, To* b, std::int64_t count, std::int64_t rank,
                             RowParts parts, float scale, bool add) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= count) {
    return;
  }
  const std::int64_t row = i / rank;
  const int place = parts.place(row);
  const std::int64_t at = row * rank * parts.num_places + place * rank + i % rank;
  const float own = place < 0 ? 0.0f : scale * to_float(wide[at]);
  b[i] = from_float<To>(add ? own + to_float(b[i]) : own);
}

}  // namespace

void run(OnCuda, Stream& stream, const SpreadRows& k) {
  const std::int64_t count = k.wide.numel();
  if (count == 0) {
    return;
  }
  dispatch_device(k.b.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    spread_rows<T><<<num_blocks(count, kThreads), kThreads, 0, cuda_stream(stream)>>>(
        k.b.as<T>(), k.wide.as<T>(), count, k.b.shape.back(), k.parts, k.scale);
    check_launch("spread_rows");
  });
}

void run(OnCuda, Stream& stream, const CollectRows& k) {
  const std::int64_t count = k.b.numel();
  if (count == 0) {
    return;
  }
  dispatch_device(k.wide.dtype, [&](auto from) {
    dispatch_device(k.b.dtype, [&](auto to) {
      using From = typename decltype(from)::type;
      using To = typename decltype(to)::type;
      collect_rows<From, To><<<num_blocks(count, kThreads), kThreads, 0, cuda_stream(stream)>>>(
          k.wide.as<From>(), k.b.as<To>(), count, k.b.shape.back(), k.parts, k.scale, k.add);
      check_launch("collect_rows");
    });
  });
}

}  // namespace bloomery
