// A counting sort: how many of each expert in each part of the pairs, where those begin, and every
// pair to its place. Within a part pairs keep their order.
#include "device/cuda_check.h"
#include "ops/common/dispatch_cuda.cuh"
#include "ops/moe/routing.h"

namespace bloomery {
namespace {

constexpr int kPairs = 256;  // of a part, and threads of its block

__global__ void count_pairs(const std::int32_t* experts, std::int64_t pairs, std::int32_t* counts,
                            int num_experts, int num_parts) {
  extern __shared__ int histogram[];
  for (int e = threadIdx.x; e < num_experts; e += kPairs) {
    histogram[e] = 0;
  }
  __syncthreads();
  const std::int64_t pair = std::int64_t{blockIdx.x} * kPairs + threadIdx.x;
  const int expert = pair < pairs ? experts[pair] : -1;
  if (expert >= 0) {
    atomicAdd(&histogram[expert], 1);
  }
  __syncthreads();
  for (int e = threadIdx.x; e < num_experts; e += kPairs) {
    counts[std::int64_t{e} * num_parts + blockIdx.x] = histogram[e];
  }
}

// One block. Counts become places: of each part, among the rows of its expert.
__global__ void lay_out_groups(std::int32_t* counts, int num_parts, int num_experts, int alignment,
                               std::int32_t* offsets, std::int32_t* tiles, int num_tiles) {
  extern __shared__ int begins[];  // num_experts + 1
  const int lane = threadIdx.x % kWarpSize, warps = blockDim.x / kWarpSize;
  for (int e = threadIdx.x / kWarpSize; e < num_experts; e += warps) {
    std::int32_t* const own = counts + std::int64_t{e} * num_parts;
    int before = 0;
    for (int first = 0; first < num_parts; first += kWarpSize) {
      const int part = first + lane;
      const int count = part < num_parts ? own[part] : 0;
      int sum = count;  // of the lanes up to this one
#pragma unroll
      for (int step = 1; step < kWarpSize; step *= 2) {
        const int other = __shfl_up_sync(0xFFFFFFFFu, sum, step);
        sum += lane >= step ? other : 0;
      }
      if (part < num_parts) {
        own[part] = before + sum - count;
      }
      before += __shfl_sync(0xFFFFFFFFu, sum, kWarpSize - 1);
    }
    if (lane == 0) {
      begins[e + 1] = (before + alignment - 1) / alignment * alignment;
    }
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    begins[0] = 0;
    for (int e = 0; e < num_experts; ++e) {
      begins[e + 1] += begins[e];
    }
  }
  __syncthreads();
  for (int e = threadIdx.x; e <= num_experts; e += blockDim.x) {
    offsets[e] = begins[e];
  }
  for (int tile = threadIdx.x; tile < num_tiles; tile += blockDim.x) {
    const int row = tile * alignment;
    int group = -1;
    for (int e = 0; e < num_experts; ++e) {
      group = begins[e] <= row && row < begins[e + 1] ? e : group;
    }
    tiles[tile] = group;
  }
}

__global__ void place_pairs(const std::int32_t* experts, std::int64_t pairs,
                            const std::int32_t* counts, const std::int32_t* offsets, int num_parts,
                            std::int32_t* source, std::int32_t* places) {
  __shared__ int all[kPairs];
  const std::int64_t pair = std::int64_t{blockIdx.x} * kPairs + threadIdx.x;
  const int expert = pair < pairs ? experts[pair] : -1;
  all[threadIdx.x] = expert;
  __syncthreads();
  if (pair >= pairs) {
    return;
  }
  if (expert < 0) {
    places[pair] = -1;
    return;
  }
  int earlier = 0;
  for (unsigned i = 0; i < threadIdx.x; ++i) {
    earlier += all[i] == expert ? 1 : 0;
  }
  const int row = offsets[expert] + counts[std::int64_t{expert} * num_parts + blockIdx.x] + earlier;
  places[pair] = row;
  source[row] = static_cast<std::int32_t>(pair);
}

}  // namespace

void run(OnCuda, Stream& stream, const SortByExpert& k) {
  const std::int64_t pairs = k.experts.numel(), num_experts = k.offsets.numel() - 1;
  const unsigned parts = num_blocks(pairs, kPairs);
  const Tensor counts = Tensor::empty(stream, DType::int32, {num_experts, std::int64_t{parts}});
  stream.fill(k.source.data, 0xFF, k.source.bytes());  // -1
  const auto experts = static_cast<int>(num_experts);
  // In fours, as the compiler reads them.
  const std::size_t shared = sizeof(int) * (static_cast<std::size_t>(num_experts) / 4 * 4 + 4);
  const cudaStream_t on = cuda_stream(stream);
  count_pairs<<<parts, kPairs, shared, on>>>(k.experts.as<std::int32_t>(), pairs,
                                             static_cast<std::int32_t*>(counts.data()), experts,
                                             static_cast<int>(parts));
  check_launch("count_pairs");
  lay_out_groups<<<1, 1024, shared, on>>>(
      static_cast<std::int32_t*>(counts.data()), static_cast<int>(parts), experts,
      static_cast<int>(k.alignment), k.offsets.as<std::int32_t>(), k.tiles.as<std::int32_t>(),
      k.tiles ? static_cast<int>(k.tiles.numel()) : 0);
  check_launch("lay_out_groups");
  place_pairs<<<parts, kPairs, 0, on>>>(k.experts.as<std::int32_t>(), pairs,
                                        static_cast<const std::int32_t*>(counts.data()),
                                        k.offsets.as<std::int32_t>(), static_cast<int>(parts),
                                        k.source.as<std::int32_t>(), k.places.as<std::int32_t>());
  check_launch("place_pairs");
}

}  // namespace bloomery
