// What the flash backward kernels share: their arguments, the order of their work, and dQ. A Kernel
// here has kThreads threads whose warps hold kQueryRows x kQueryColumns of a tile of dQ each, as a
// QueryGrad of kPieces accumulator pieces; kQueryDown of them, one below the other, hold kQueries.
#pragma once

#include "ops/attention/flash_common_sm80.cuh"

namespace bloomery::attention_cuda {

struct FlashBackward {
  AttentionBackward k;
  const float* delta;  // [sequences, heads, query_length], divided by the dropout scale
  // dQ in the order of the threads' accumulators, [splits, sequences, heads, tiles].
  float* partial;
  int splits;
  float scale_log2;     // score scale times log2(e)
  float dropout_scale;  // one without dropout
  float* bias_partial;  // see BiasPartials
  std::int64_t bias_partial_reach;
};

// Of a tile of dQ: what the threads hold together.
template <class Kernel>
inline constexpr std::int64_t kPartialElements =
    std::int64_t{Kernel::kThreads} * Kernel::kPieces * 4;

// Query tiles with a query that sees a key of [first_key, first_key + kKeys): a range, because both
// ends of what queries see are non-decreasing.
template <int kQueries, int kKeys>
__device__ __forceinline__ KeyRange query_tiles_of(const AttentionProblem& problem, int sequence,
                                                   int first_key) {
  KeyRange tiles{0, static_cast<int>((problem.query_length + kQueries - 1) / kQueries)};
  if (problem.key_begin == nullptr && problem.key_end == nullptr) {
    if (problem.causal) {
      const int offset = static_cast<int>(problem.key_length - problem.query_length);
      tiles.begin = min(max(first_key - offset, 0) / kQueries, tiles.end);
      if (problem.window > 0) {  // the last key is seen for the last time
        const std::int64_t last = first_key + kKeys - 1 - offset + problem.window - 1;
        const std::int64_t end = last < 0 ? 0 : last / kQueries + 1;
        tiles.end = end < tiles.begin ? tiles.begin : min(tiles.end, static_cast<int>(end));
      }
    }
    return tiles;
  }
  const auto sees = [&](int tile) {
    return seen_by_any(problem, sequence, tile * kQueries, kQueries)
        .touches(first_key, first_key + kKeys);
  };
  while (tiles.begin < tiles.end && !sees(tiles.begin)) {
    ++tiles.begin;
  }
  while (tiles.end > tiles.begin && !sees(tiles.end - 1)) {
    --tiles.end;
  }
  return tiles;
}

// Writes this thread's part of a tile of dQ.
template <class Kernel>
__device__ __forceinline__ void store_query_grad(const FlashBackward& args,
                                                 const typename Kernel::QueryGrad& grad,
                                                 int sequence, int head, int query_tile) {
  const auto rows = query_rows<typename Kernel::T>(args.k.grad_q, args.k.problem, sequence, head);
  const float factor = args.k.problem.scale * args.dropout_scale;
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const int row = query_tile * Kernel::kQueries + warp % Kernel::kQueryDown * Kernel::kQueryRows;
  const int column = warp / Kernel::kQueryDown * Kernel::kQueryColumns;
#pragma unroll
  for (int i = 0; i < Kernel::kQueryRows / 16; ++i) {
#pragma unroll
    for (int j = 0; j < Kernel::kQueryColumns / 8; ++j) {
      store_piece<Kernel::kVectors>(rows, row + 16 * i, column + 8 * j, grad[i][j], factor, factor);
    }
  }
}

// dQ of one query tile: the sum over the splits that visited it, in order.
template <class Kernel>
__global__ void __launch_bounds__(Kernel::kThreads)
    flash_add_splits(const __grid_constant__ FlashBackward args) {
  const AttentionProblem& problem = args.k.problem;
  const unsigned tiles =
      static_cast<unsigned>((problem.query_length + Kernel::kQueries - 1) / Kernel::kQueries);
  const unsigned heads = static_cast<unsigned>(problem.num_heads);
  const int tile = static_cast<int>(blockIdx.x % tiles);
  const int head = static_cast<int>(blockIdx.x / tiles % heads);
  const int sequence = static_cast<int>(blockIdx.x / tiles / heads);
  const KeyRange any = seen_by_any(problem, sequence, tile * Kernel::kQueries, Kernel::kQueries);
  typename Kernel::QueryGrad grad;
  clear(grad);
  constexpr int kAcross = Kernel::kQueryColumns / 8;
  // Split s has the key tiles congruent to s.
  const int first = any.begin / Kernel::kKeys;
  const int last = any.begin < any.end ? (any.end - 1) / Kernel::kKeys : first - 1;
  for (int split = 0; split < args.splits; ++split) {
    const int first_of_split = first + (split - first % args.splits + args.splits) % args.splits;
    if (first_of_split > last) {
      continue;
    }
    const std::int64_t at =
        ((split * problem.num_sequences + sequence) * problem.num_heads + head) * tiles + tile;
    const float4* partial =
        reinterpret_cast<const float4*>(args.partial + at * kPartialElements<Kernel>) + threadIdx.x;
#pragma unroll
    for (int n = 0; n < Kernel::kPieces; ++n) {
      const float4 piece = partial[n * Kernel::kThreads];
      float(&c)[4] = grad[n / kAcross][n % kAcross];
      c[0] += piece.x, c[1] += piece.y, c[2] += piece.z, c[3] += piece.w;
    }
  }
  store_query_grad<Kernel>(args, grad, sequence, head, tile);
}

}  // namespace bloomery::attention_cuda
