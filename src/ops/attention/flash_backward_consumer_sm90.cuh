// The products of flash_backward_sm90.cuh: one warpgroup's 64 keys.
#pragma once

#include "ops/attention/flash_backward_sm90.cuh"

namespace bloomery::attention_cuda {

template <class Block>
struct FlashBackwardConsumer90 {
  using T = typename Block::T;
  static constexpr int kDim = Block::kDim, kQueries = Block::kQueries, kKeys = Block::kKeys;
  static constexpr int kQueryPieces = kQueries / 8;
  static constexpr bool kDropout = Block::kDropout;
  using Scores = float[kQueries / 2];
  using Operand = std::uint32_t[kQueries / 16][4];
  using Grad = float[kDim / 2];
  using QueryGrad = float[Block::kQueryColumns / 2];

  const Block& block;
  const AttentionProblem& problem;
  const int warpgroup, lane;
  const int row;  // first key of this warp within the tile
  Grad grad_k, grad_v;

  __device__ __forceinline__ explicit FlashBackwardConsumer90(const Block& block_)
      : block(block_),
        problem(block_.problem),
        warpgroup(static_cast<int>(threadIdx.x) / kWarpgroup),
        lane(static_cast<int>(threadIdx.x) % kWarpSize),
        row(static_cast<int>(threadIdx.x) / kWarpSize * 16) {}

  // Adds nothing: S^T = K Q^T or dP^T = V dO^T, of this warpgroup's keys.
  __device__ __forceinline__ void start_scores(Scores& scores, const typename Block::KeyTile& a,
                                               const typename Block::QueryTile& b) const {
#pragma unroll
    for (int k = 0; k < kDim; k += 16) {
      WarpgroupProduct<T, kQueries>::template run<false, false>(
          scores, a.along_rows(64 * warpgroup, k), b.along_rows(0, k), k > 0);
    }
    commit_products();
  }
  // dV += P^T dO or dK += dS^T Q.
  __device__ __forceinline__ static void start_grad(Grad& grad, const Operand& a,
                                                    const typename Block::QueryTile& b) {
#pragma unroll
    for (int k = 0; k < kQueries / 16; ++k) {
      WarpgroupProduct<T, kDim>::template run<true>(grad, a[k], b.down_rows(16 * k, 0), true);
    }
  }
  // This warpgroup's queries and channels of dS K.
  __device__ __forceinline__ void start_query_grad(QueryGrad& grad, int stage) const {
    const auto scores = block.grad_scores(stage);
    const auto keys = block.keys();
    const int query = kQueries == 128 ? 64 * warpgroup : 0, channel = 64 * warpgroup - query;
#pragma unroll
    for (int k = 0; k < kKeys; k += 16) {
      WarpgroupProduct<T, Block::kQueryColumns>::template run<true, true>(
          grad, scores.down_rows(k, query), keys.down_rows(k, channel), k > 0);
    }
  }

  // The statistics of this thread's queries of piece j.
  __device__ __forceinline__ float2 statistics(std::uint32_t base, int j) const {
    float2 pair;
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];\n"
                 : "=f"(pair.x), "=f"(pair.y)
                 : "r"(base + (8 * j + lane % 4 * 2) * 4)
                 : "memory");
    return pair;
  }

  // Scores become probabilities.
  __device__ __forceinline__ void softmax(Scores& scores, int stage) const {
    const float scale = block.args.scale_log2;
#pragma unroll
    for (int j = 0; j < kQueryPieces; ++j) {
      const float2 lse = statistics(block.lse(stage), j);
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        float* pair = scores + 4 * j + 2 * r;
        pair[0] = exp2_approximate(pair[0] * scale - lse.x);
        pair[1] = exp2_approximate(pair[1] * scale - lse.y);
      }
    }
  }

  __device__ __forceinline__ bool needs_mask(int first_query, int first_key) const {
    const KeyRange every = seen_by_every(problem, block.sequence, first_query, kQueries);
    return first_key + row < every.begin || first_key + row + 16 > every.end;
  }
  // Probabilities of keys that a query does not see become zero.
  __device__ __forceinline__ void mask(Scores& scores, int first_query, int first_key) const {
    const int key = first_key + row + lane / 4;
#pragma unroll
    for (int j = 0; j < kQueryPieces; ++j) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const int query = first_query + 8 * j + lane % 4 * 2 + e;
        const KeyRange range = query < problem.query_length
                                   ? visible_keys(problem, block.sequence, query)
                                   : KeyRange{0, 0};
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          float& score = scores[4 * j + 2 * r + e];
          score = key + 8 * r >= range.begin && key + 8 * r < range.end ? score : 0.0f;
        }
      }
    }
  }

  // Probabilities that dropout drops become their own negatives. Both keys of this thread are in
  // one block of random bits, as its lanes `bit` and `bit` + 2.
  __device__ __forceinline__ void drop(Scores& scores, int stage) const {
    const int block_of_keys = row / 32 * 4 + lane / 8, bit = row / 16 % 2 * 4 + lane / 4 % 2;
    const std::uint32_t from =
        block.masks(stage) + block_of_keys * kQueries + lane % 4 * Block::kLaneQueries;
#pragma unroll
    for (int n = 0; n < kQueries / 64; ++n) {
      std::uint32_t words[4];
      asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];\n"
                   : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                   : "r"(from + 16 * n)
                   : "memory");
#pragma unroll
      for (int i = 0; i < 16; ++i) {  // query 8 * (i / 2) + 2 * (lane % 4) + i % 2 of these
        const std::uint32_t word = words[i / 4] >> bit;
#pragma unroll
        for (int r = 0; r < 2; ++r) {
          float& score = scores[32 * n + i / 2 * 4 + 2 * r + i % 2];
          const std::uint32_t sign = (word << (31 - (i % 4 * 8 + 2 * r))) & 0x80000000u;
          score = __uint_as_float(__float_as_uint(score) ^ sign);
        }
      }
    }
  }

  // dP / c becomes dS / c. A dropped probability is negative: |p| (0 - delta).
  __device__ __forceinline__ void softmax_backward(Scores& grads, const Scores& scores,
                                                   int stage) const {
#pragma unroll
    for (int j = 0; j < kQueryPieces; ++j) {
      const float2 delta = statistics(block.delta(stage), j);
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        float& grad = grads[4 * j + i];
        const float p = scores[4 * j + i];
        if constexpr (kDropout) {
          zero_if_negative(grad, p);
        }
        grad = fabsf(p) * (grad - (i % 2 == 0 ? delta.x : delta.y));
      }
    }
  }

  template <bool kPositive>
  __device__ __forceinline__ static void round(const Scores& scores, Operand& result) {
#pragma unroll
    for (int k = 0; k < kQueries / 16; ++k) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float low = scores[8 * k + 2 * i], high = scores[8 * k + 2 * i + 1];
        result[k][i] = kPositive ? pack_positive<T>(low, high) : pack_pair<T>(low, high);
      }
    }
  }

  __device__ __forceinline__ void store_grad_scores(const Operand& operand, int stage) const {
    const auto tile = block.grad_scores(stage);
#pragma unroll
    for (int k = 0; k < kQueries / 16; ++k) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int column = 16 * k + i / 2 * 8 + lane % 4 * 2;
        store_shared(tile.base + tile.offset(row + i % 2 * 8 + lane / 4, column), operand[k][i]);
      }
    }
    fence_shared_writes();
  }

  // This thread's part of dQ of a query tile, and what is to be done with it on this visit.
  struct QueryGradVisit {
    float4* partial;
    bool first, last, sees;
  };
  __device__ __forceinline__ QueryGradVisit visit(int head, int query_tile, int key_tile) const {
    const KeyRange any = seen_by_any(problem, block.sequence, query_tile * kQueries, kQueries);
    // A tile of queries without any key may stand between others; clear_unseen writes its dQ.
    const bool sees = any.touches(key_tile * kKeys, (key_tile + 1) * kKeys);
    const int splits = block.args.splits;
    const std::int64_t query_tiles = (problem.query_length + kQueries - 1) / kQueries;
    const std::int64_t tile =
        ((block.split * problem.num_sequences + block.sequence) * problem.num_heads + head) *
            query_tiles +
        query_tile;
    // Blocks take key tiles downwards in steps of `splits`.
    return {reinterpret_cast<float4*>(block.args.partial + tile * kPartialElements<Block>) +
                threadIdx.x,
            !sees || key_tile + splits > (any.end - 1) / kKeys,
            splits == 1 && key_tile == any.begin / kKeys, sees};
  }
  __device__ __forceinline__ static void load_partial(float4 (&partial)[Block::kPieces],
                                                      const QueryGradVisit& visit) {
#pragma unroll
    for (int n = 0; n < Block::kPieces; ++n) {
      partial[n] = visit.first ? float4{} : visit.partial[n * Block::kThreads];
    }
  }
  __device__ __forceinline__ void store_partial(const QueryGrad& grad, const QueryGradVisit& visit,
                                                int head, int query_tile) const {
    if (visit.sees && visit.last) {
      typename Block::QueryGrad pieces;
#pragma unroll
      for (int i = 0; i < 4 * Block::kPieces; ++i) {
        pieces[0][i / 4][i % 4] = grad[i];
      }
      store_query_grad<Block>(block.args, pieces, block.sequence, head, query_tile);
    } else if (visit.sees) {
#pragma unroll
      for (int n = 0; n < Block::kPieces; ++n) {
        visit.partial[n * Block::kThreads] =
            float4{grad[4 * n], grad[4 * n + 1], grad[4 * n + 2], grad[4 * n + 3]};
      }
    }
  }

  // One pair of tiles, number `count` of the block. Comments name what the tensor cores work on
  // meanwhile.
  __device__ __forceinline__ void run_step(int head, int query_tile, int key_tile, int count) {
    const int stage = count % 2, first_query = query_tile * kQueries;
    Scores scores, grads;
    Operand operand;
    block.queries_there(stage).wait(count / 2);
    fence_products();
    start_scores(scores, block.keys(), block.queries(stage));
    start_scores(grads, block.values(), block.grads_out(stage));
    wait_products<1>();
    pin(scores);
    softmax(scores, stage);  // dP
    if (needs_mask(first_query, key_tile * kKeys)) {
      mask(scores, first_query, key_tile * kKeys);
    }
    if constexpr (kDropout) {
      drop(scores, stage);
    }
    round<kDropout>(scores, operand);
    fence_products();
    start_grad(grad_v, operand, block.grads_out(stage));
    commit_products();
    wait_products<1>();
    pin(grads);
    softmax_backward(grads, scores, stage);  // dV
    Operand grad_operand;
    round<false>(grads, grad_operand);
    store_grad_scores(grad_operand, stage);
    sync_threads(1, Block::kThreads);
    QueryGrad grad_q;
    fence_products();
    start_grad(grad_k, grad_operand, block.queries(stage));
    start_query_grad(grad_q, stage);
    commit_products();
    const QueryGradVisit at = visit(head, query_tile, key_tile);
    float4 partial[Block::kPieces];
    load_partial(partial, at);
    wait_products();
    pin(grad_q);
    block.queries_free(stage).arrive();
#pragma unroll
    for (int n = 0; n < Block::kPieces; ++n) {
      grad_q[4 * n] += partial[n].x, grad_q[4 * n + 1] += partial[n].y;
      grad_q[4 * n + 2] += partial[n].z, grad_q[4 * n + 3] += partial[n].w;
    }
    store_partial(grad_q, at, head, query_tile);
  }

  __device__ __forceinline__ void store_key_grads(int first_key) {
    const auto k_rows = key_rows<T>(block.args.k.grad_k, problem, block.sequence, block.group);
    const auto v_rows = key_rows<T>(block.args.k.grad_v, problem, block.sequence, block.group);
    const float v_factor = block.args.dropout_scale, k_factor = problem.scale * v_factor;
    pin(grad_k);
    pin(grad_v);
#pragma unroll
    for (int j = 0; j < kDim / 8; ++j) {
      const float k[4] = {grad_k[4 * j], grad_k[4 * j + 1], grad_k[4 * j + 2], grad_k[4 * j + 3]};
      const float v[4] = {grad_v[4 * j], grad_v[4 * j + 1], grad_v[4 * j + 2], grad_v[4 * j + 3]};
      store_piece<true>(k_rows, first_key + row, 8 * j, k, k_factor, k_factor);
      store_piece<true>(v_rows, first_key + row, 8 * j, v, v_factor, v_factor);
    }
  }

  // Query tiles that no key tile visits get their zeros here.
  __device__ __forceinline__ void clear_unseen() const {
    typename Block::QueryGrad zeros;
    clear(zeros);
    for (int tile = 0; tile * kQueries < problem.query_length; ++tile) {
      const KeyRange any = seen_by_any(problem, block.sequence, tile * kQueries, kQueries);
      if (!any.touches(0, static_cast<int>(problem.key_length))) {
        for (int h = 0; h < block.heads_per_group; ++h) {
          store_query_grad<Block>(block.args, zeros, block.sequence,
                                  block.group * block.heads_per_group + h, tile);
        }
      }
    }
  }

  __device__ __forceinline__ void run() {
    if (block.args.splits == 1) {
      clear_unseen();
    }
    int round = 0, count = 0;  // key tiles and query tiles so far
    block.for_key_tiles([&](int key_tile, const auto& steps) {
#pragma unroll
      for (int i = 0; i < kDim / 2; ++i) {
        grad_k[i] = 0;
        grad_v[i] = 0;
      }
      if (steps.count > 0) {
        block.keys_there().wait(round++);
        for (int step = 0; step < steps.count; ++step, ++count) {
          const int head = block.group * block.heads_per_group + step / steps.per_head;
          run_step(head, steps.query_tile(step), key_tile, count);
        }
        if (lane == 0) {
          block.keys_free().arrive();
        }
      }
      store_key_grads(key_tile * kKeys);
    });
  }
};

template <class Kernel>
__global__ void __launch_bounds__(Kernel::kBlockThreads, 1)
    flash_backward_90(const __grid_constant__ FlashBackward90 args) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ unsigned char shared[];
  const unsigned groups = static_cast<unsigned>(args.base.k.problem.num_groups);
  const unsigned splits = static_cast<unsigned>(args.base.splits);
  const unsigned place = blockIdx.x / splits;
  const Kernel kernel(args, static_cast<int>(place / groups), static_cast<int>(place % groups),
                      static_cast<int>(blockIdx.x % splits),
                      (shared_address(shared) + 1023) / 1024 * 1024);
  kernel.initialise_barriers();
  if (threadIdx.x >= Kernel::kThreads) {
    keep_registers<40>();
    FlashBackwardProducer90<Kernel>(kernel).run();
  } else {
    take_registers<232>();
    FlashBackwardConsumer90<Kernel>(kernel).run();
  }
#endif
}

}  // namespace bloomery::attention_cuda
