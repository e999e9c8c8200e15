// Flash attention, backward. With S = scale Q K^T, P = exp(S - lse), M the dropout mask and c its
// scale (P' = c M P multiplied V in the forward), and dO the gradient of the output:
//
//   dV = P'^T dO        dP = c M (dO V^T)       delta = rowsum(dO * O)
//   dS = P (dP - delta)        dQ = scale dS K        dK = scale dS^T Q
//
// With a bias B by distance, S = scale (Q K^T + B) and dB is scale dS, summed over equal distances.
//
// The kernel works with dS / c = P (M dO V^T - delta / c) and multiplies by c at the end.
//
// A block owns a key/value head of one sequence and every kSplits-th of its key tiles. It walks
// them from the last to the first, and for each walks the query tiles (of all heads of the group)
// that see it, adding up dK and dV in registers. dQ is added up in fp32 in global memory, where
// each thread finds again what it alone wrote: no other block touches it, so the order is fixed and
// nothing is atomic. Without splits the visit of a query tile's first key tile, its last, writes
// dQ.
#pragma once

#include "ops/attention/flash_backward_launch.cuh"

namespace bloomery::attention_cuda {

template <class T_, int kDim_, bool kDropout_, bool kVectors_, bool kBias_>
struct FlashBackwardKernel {
  using T = T_;
  static constexpr int kDim = kDim_;  // head_dim rounded up
  static constexpr bool kDropout = kDropout_;
  static constexpr bool kVectors = kVectors_;  // see load_tile
  static constexpr bool kBias = kBias_;

  // Four warps with tall tiles, two blocks per multiprocessor; or eight warps with wide ones.
  static constexpr bool kTall = kDim <= 64;
  static constexpr int kQueries = kTall ? 128 : 64, kKeys = kTall ? 64 : 128;
  static constexpr int kThreads = kTall ? 128 : 256, kBlocksPerProcessor = kTall ? 2 : 1;
  // How warps share each product, as rows x columns of warps.
  static constexpr int kScoreDown = 4, kScoreAcross = kTall ? 1 : 2;
  static constexpr int kGradDown = kTall ? 2 : 4, kGradAcross = 2;    // dK and dV
  static constexpr int kQueryDown = 4, kQueryAcross = kTall ? 1 : 2;  // dQ

  static constexpr int kScoreRows = kQueries / kScoreDown, kScoreColumns = kKeys / kScoreAcross;
  static constexpr int kGradRows = kKeys / kGradDown, kGradColumns = kDim / kGradAcross;
  static constexpr int kQueryRows = kQueries / kQueryDown, kQueryColumns = kDim / kQueryAcross;
  static constexpr int kRowsHeld = kScoreRows / 8;

  static constexpr int kQueryBytes = kQueries * kDim * 2, kKeyBytes = kKeys * kDim * 2;
  static constexpr int kScoreBytes = kQueries * kKeys * 2;
  static constexpr int kSharedBytes = 4 * kQueryBytes + 2 * kKeyBytes + 2 * kScoreBytes;

  using Scores = float[kScoreRows / 16][kScoreColumns / 8][4];
  using Grad = float[kGradRows / 16][kGradColumns / 8][4];
  using QueryGrad = float[kQueryRows / 16][kQueryColumns / 8][4];
  using Tile = SharedTile<kDim>;
  using ScoreTile = SharedTile<kKeys>;

  const FlashBackward& args;
  const AttentionProblem& problem;
  const int sequence, group, split;
  const int heads_per_group, query_tiles;
  const Tile queries, grads_out, keys, values;  // the first two: two buffers, kQueryBytes apart
  const ScoreTile probabilities, grad_scores;
  Grad grad_k, grad_v;

  __device__ FlashBackwardKernel(const FlashBackward& args_, int sequence_, int group_, int split_,
                                 std::uint32_t shared)
      : args(args_),
        problem(args_.k.problem),
        sequence(sequence_),
        group(group_),
        split(split_),
        heads_per_group(static_cast<int>(problem.num_heads / problem.num_groups)),
        query_tiles(static_cast<int>((problem.query_length + kQueries - 1) / kQueries)),
        queries{shared},
        grads_out{shared + 2 * kQueryBytes},
        keys{shared + 4 * kQueryBytes},
        values{shared + 4 * kQueryBytes + kKeyBytes},
        probabilities{shared + 4 * kQueryBytes + 2 * kKeyBytes},
        grad_scores{shared + 4 * kQueryBytes + 2 * kKeyBytes + kScoreBytes} {}

  __device__ static __forceinline__ int warp() { return threadIdx.x / kWarpSize; }
  __device__ static __forceinline__ int lane() { return threadIdx.x % kWarpSize; }
  __device__ static __forceinline__ int score_row() { return warp() % kScoreDown * kScoreRows; }
  __device__ static __forceinline__ int score_column() {
    return warp() / kScoreDown * kScoreColumns;
  }

  __device__ __forceinline__ void load_queries(int step, int head_in_group, int query_tile) const {
    const int head = group * heads_per_group + head_in_group;
    const std::uint32_t buffer = step % 2 * kQueryBytes;
    load_tile<kQueries, kThreads, kVectors>(Tile{queries.base + buffer},
                                            query_rows<const T>(args.k.q, problem, sequence, head),
                                            query_tile * kQueries);
    load_tile<kQueries, kThreads, kVectors>(
        Tile{grads_out.base + buffer},
        output_rows<const T>(args.k.grad_out.data, problem, sequence, head), query_tile * kQueries);
    commit_copies();
  }

  // Query of this thread's row r of its warp's scores.
  __device__ static __forceinline__ int score_query(int first_query, int r) {
    return first_query + score_row() + 8 * r + lane() / 4;
  }

  __device__ __forceinline__ std::int64_t statistics_row(int head) const {
    return (sequence * problem.num_heads + head) * problem.query_length;
  }
  // The log-sum-exp of this thread's rows in units of log2. Queries without keys, and rows past the
  // end, get +inf, so that their probabilities are zero.
  __device__ __forceinline__ void load_lse(float (&lse)[kRowsHeld], int head,
                                           int first_query) const {
    const float* all = static_cast<const float*>(args.k.lse.data) + statistics_row(head);
#pragma unroll
    for (int r = 0; r < kRowsHeld; ++r) {
      const int query = score_query(first_query, r);
      const float value = query < problem.query_length ? all[query] : -INFINITY;
      lse[r] = value == -INFINITY ? INFINITY : value * kLog2E;
    }
  }
  __device__ __forceinline__ void load_delta(float (&delta)[kRowsHeld], int head,
                                             int first_query) const {
    const float* all = args.delta + statistics_row(head);
#pragma unroll
    for (int r = 0; r < kRowsHeld; ++r) {
      const int query = score_query(first_query, r);
      delta[r] = query < problem.query_length ? all[query] : 0.0f;
    }
  }

  __device__ __forceinline__ void add_bias(Scores& scores, int head, int first_query,
                                           int first_key) const {
    const HeadBias bias(problem, head);
    const int offset = static_cast<int>(problem.key_length - problem.query_length);
#pragma unroll
    for (int r = 0; r < kRowsHeld; ++r) {
      const int nearest =
          first_key + score_column() + lane() % 4 * 2 - score_query(first_query, r) - offset;
#pragma unroll
      for (int j = 0; j < kScoreColumns / 8; ++j) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          scores[r / 2][j][r % 2 * 2 + e] += bias.at(nearest + 8 * j + e);
        }
      }
    }
  }

  // Adds dS of one pair of tiles to the gradient of the bias: each thread sums some diagonals, on
  // which keys are at the same distance. No other block has this part of the gradient, and in one
  // step no other thread this distance of it.
  __device__ __forceinline__ void add_bias_grad(int head, int first_query, int first_key) const {
    const std::int64_t part = split * problem.num_sequences + sequence;
    const int reach = static_cast<int>(args.bias_partial_reach);
    float* const to =
        args.bias_partial + (part * problem.num_heads + head) * (2 * args.bias_partial_reach + 1);
    const int first_place =
        first_query + static_cast<int>(problem.key_length - problem.query_length);
    for (int n = static_cast<int>(threadIdx.x); n < kQueries + kKeys - 1; n += kThreads) {
      const int ahead = n - (kQueries - 1);  // of the column before the row
      const int distance = first_key - first_place + ahead;
      float sum = 0;
      for (int row = max(0, -ahead); row < min(kQueries, kKeys - ahead); ++row) {
        const int column = row + ahead;
        sum += load_shared<T>(grad_scores.base + grad_scores.offset(row, column / 8) +
                              static_cast<std::uint32_t>(column % 8 * 2));
      }
      if (distance >= -reach && distance <= reach) {  // others are of rows past the end
        to[distance + reach] += sum;
      }
    }
  }

  // Scores become probabilities.
  __device__ __forceinline__ void softmax(Scores& scores, const float (&lse)[kRowsHeld]) const {
#pragma unroll
    for (int r = 0; r < kRowsHeld; ++r) {
#pragma unroll
      for (int j = 0; j < kScoreColumns / 8; ++j) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& score = scores[r / 2][j][r % 2 * 2 + e];
          score = exp2_approximate(score * args.scale_log2 - lse[r]);
        }
      }
    }
  }

  // Probabilities of keys that a query does not see become zero.
  __device__ __forceinline__ void mask(Scores& scores, int first_query, int first_key) const {
#pragma unroll
    for (int r = 0; r < kRowsHeld; ++r) {
      const int query = score_query(first_query, r);
      const KeyRange range =
          query < problem.query_length ? visible_keys(problem, sequence, query) : KeyRange{0, 0};
#pragma unroll
      for (int j = 0; j < kScoreColumns / 8; ++j) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const int key = first_key + score_column() + 8 * j + lane() % 4 * 2 + e;
          float& score = scores[r / 2][j][r % 2 * 2 + e];
          score = key >= range.begin && key < range.end ? score : 0.0f;
        }
      }
    }
  }

  // Probabilities that dropout drops become their own negatives.
  __device__ __forceinline__ void drop(Scores& scores, int head, int first_query,
                                       int first_key) const {
    const RowDropout dropout(problem, sequence, head);
    const int last = static_cast<int>(problem.query_length) - 1;
#pragma unroll
    for (int r = 0; r < kRowsHeld; ++r) {
      const std::int32_t place = problem.places.places[min(score_query(first_query, r), last)];
#pragma unroll
      for (int j = 0; j < kScoreColumns / 8; j += 4) {
        dropout.apply(place, first_key + score_column() + 8 * j,
                      [&](int column, int which, bool dropped) {
                        float& score = scores[r / 2][j + column][r % 2 * 2 + which];
                        score = dropped ? -score : score;
                      });
      }
    }
  }

  // Writes this warp's part of a score tile, rounded.
  template <class Element>
  __device__ __forceinline__ void store_scores(const ScoreTile& tile,
                                               const Element& element) const {
#pragma unroll
    for (int r = 0; r < kRowsHeld; ++r) {
      const int row = score_row() + 8 * r + lane() / 4;
#pragma unroll
      for (int j = 0; j < kScoreColumns / 8; ++j) {
        const std::uint32_t address =
            tile.base + tile.offset(row, score_column() / 8 + j) + lane() % 4 * 4;
        store_shared(address, pack_pair<T>(element(r, j, 0), element(r, j, 1)));
      }
    }
  }

  // Probabilities and dS / c of one pair of tiles, into shared memory.
  __device__ __forceinline__ void compute_scores(int head, int first_query, int first_key,
                                                 std::uint32_t buffer) const {
    float lse[kRowsHeld], delta[kRowsHeld];
    load_lse(lse, head, first_query);
    if constexpr (kDropout) {  // here or further down: where each instance needs no spilling
      load_delta(delta, head, first_query);
    }
    Scores scores;
    clear(scores);
    warp_multiply<T, kDim, Side::plain, Side::plain>(scores, Tile{queries.base + buffer},
                                                     score_row(), 0, keys, score_column(), 0);
    const KeyRange every = seen_by_every(problem, sequence, first_query, kQueries);
    if constexpr (kBias) {
      add_bias(scores, head, first_query, first_key);
    }
    softmax(scores, lse);
    if (first_key < every.begin || first_key + kKeys > every.end) {
      mask(scores, first_query, first_key);
    }
    if constexpr (kDropout) {
      drop(scores, head, first_query, first_key);
    }
    store_scores(probabilities, [&](int r, int j, int e) {
      const float p = scores[r / 2][j][r % 2 * 2 + e];
      return kDropout ? fmaxf(p, 0.0f) : p;
    });
    if constexpr (!kDropout) {
      load_delta(delta, head, first_query);
    }
    Scores grads;
    clear(grads);
    warp_multiply<T, kDim, Side::plain, Side::plain>(grads, Tile{grads_out.base + buffer},
                                                     score_row(), 0, values, score_column(), 0);
    store_scores(grad_scores, [&](int r, int j, int e) {
      const float p = scores[r / 2][j][r % 2 * 2 + e];
      const float difference = grads[r / 2][j][r % 2 * 2 + e] - delta[r];
      return p * (kDropout && p < 0 ? delta[r] : difference);  // dropped: |p| (0 - delta)
    });
  }

  // This thread's place in the partial dQ of a query tile.
  __device__ __forceinline__ float4* partial_of(int head, int query_tile) const {
    const std::int64_t heads = problem.num_heads, sequences = problem.num_sequences;
    const std::int64_t tile =
        ((split * sequences + sequence) * heads + head) * query_tiles + query_tile;
    return reinterpret_cast<float4*>(args.partial + tile * kPartialElements<FlashBackwardKernel>) +
           threadIdx.x;
  }

  // dV += P^T dO, dQ += dS K, dK += dS^T Q for one pair of tiles.
  __device__ __forceinline__ void add_products(int head, int query_tile, int key_tile,
                                               std::uint32_t buffer) {
    const KeyRange any = seen_by_any(problem, sequence, query_tile * kQueries, kQueries);
    // A tile of queries without any key may stand between others; clear_unseen writes its dQ.
    const bool sees = any.touches(key_tile * kKeys, (key_tile + 1) * kKeys);
    const int last_key_tile = (any.end - 1) / kKeys, first_key_tile = any.begin / kKeys;
    // Blocks take key tiles downwards in steps of `splits`.
    const bool first_visit = !sees || key_tile + args.splits > last_key_tile;
    const bool last_visit = args.splits == 1 && key_tile == first_key_tile;
    float4* partial = partial_of(head, query_tile);
    QueryGrad grad_q;
    if (first_visit) {
      clear(grad_q);
    } else {
#pragma unroll
      for (int n = 0; n < kPieces; ++n) {
        const float4 piece = partial[n * kThreads];
        float(&c)[4] = grad_q[n / (kQueryColumns / 8)][n % (kQueryColumns / 8)];
        c[0] = piece.x, c[1] = piece.y, c[2] = piece.z, c[3] = piece.w;
      }
    }
    const int grad_row = warp() % kGradDown * kGradRows;
    const int grad_column = warp() / kGradDown * kGradColumns;
    warp_multiply<T, kQueries, Side::transposed, Side::transposed>(
        grad_v, probabilities, 0, grad_row, Tile{grads_out.base + buffer}, 0, grad_column);
    warp_multiply<T, kKeys, Side::plain, Side::transposed>(
        grad_q, grad_scores, warp() % kQueryDown * kQueryRows, 0, keys, 0,
        warp() / kQueryDown * kQueryColumns);
    if (sees && last_visit) {
      store_query_grad<FlashBackwardKernel>(args, grad_q, sequence, head, query_tile);
    } else if (sees) {
#pragma unroll
      for (int n = 0; n < kPieces; ++n) {
        const float(&c)[4] = grad_q[n / (kQueryColumns / 8)][n % (kQueryColumns / 8)];
        partial[n * kThreads] = float4{c[0], c[1], c[2], c[3]};
      }
    }
    warp_multiply<T, kQueries, Side::transposed, Side::transposed>(
        grad_k, grad_scores, 0, grad_row, Tile{queries.base + buffer}, 0, grad_column);
  }
  static constexpr int kPieces = kQueryRows / 16 * (kQueryColumns / 8);

  __device__ __forceinline__ void store_key_grads(int first_key) const {
    const HeadRows<T> k_rows = key_rows<T>(args.k.grad_k, problem, sequence, group);
    const HeadRows<T> v_rows = key_rows<T>(args.k.grad_v, problem, sequence, group);
    const float k_factor = problem.scale * args.dropout_scale, v_factor = args.dropout_scale;
    const int row = first_key + warp() % kGradDown * kGradRows;
    const int column = warp() / kGradDown * kGradColumns;
#pragma unroll
    for (int i = 0; i < kGradRows / 16; ++i) {
#pragma unroll
      for (int j = 0; j < kGradColumns / 8; ++j) {
        store_piece<kVectors>(k_rows, row + 16 * i, column + 8 * j, grad_k[i][j], k_factor,
                              k_factor);
        store_piece<kVectors>(v_rows, row + 16 * i, column + 8 * j, grad_v[i][j], v_factor,
                              v_factor);
      }
    }
  }

  __device__ __forceinline__ void run_key_tile(int key_tile) {
    const int first_key = key_tile * kKeys;
    const KeyRange tiles = query_tiles_of<kQueries, kKeys>(problem, sequence, first_key);
    clear(grad_k);
    clear(grad_v);
    const int per_head = max(tiles.end - tiles.begin, 0), steps = per_head * heads_per_group;
    // Up and down in turn: what was added to dQ last is still in the cache when it comes first.
    const bool up = key_tile / args.splits % 2 == 0;
    const int start = up ? tiles.begin : tiles.end - 1, direction = up ? 1 : -1;
    const auto query_tile = [&](int step) { return start + direction * (step % per_head); };
    __syncthreads();  // all are done with the keys and values of the tile before
    if (steps > 0) {
      load_tile<kKeys, kThreads, kVectors>(
          keys, key_rows<const T>(args.k.k, problem, sequence, group), first_key);
      load_tile<kKeys, kThreads, kVectors>(
          values, key_rows<const T>(args.k.v, problem, sequence, group), first_key);
      load_queries(0, 0, query_tile(0));
    }
    for (int step = 0; step < steps; ++step) {
      wait_copies();
      __syncthreads();  // the tiles are there for all, and all are done with the step before
      if (step + 1 < steps) {
        load_queries(step + 1, (step + 1) / per_head, query_tile(step + 1));
      }
      const int head = group * heads_per_group + step / per_head;
      const std::uint32_t buffer = step % 2 * kQueryBytes;
      compute_scores(head, query_tile(step) * kQueries, first_key, buffer);
      __syncthreads();
      if constexpr (kBias) {
        if (args.bias_partial != nullptr) {
          add_bias_grad(head, query_tile(step) * kQueries, first_key);
        }
      }
      add_products(head, query_tile(step), key_tile, buffer);
    }
    store_key_grads(first_key);
  }

  // Query tiles that no key tile visits get their zeros here.
  __device__ __forceinline__ void clear_unseen() const {
    QueryGrad zeros;
    clear(zeros);
    for (int tile = 0; tile < query_tiles; ++tile) {
      const KeyRange any = seen_by_any(problem, sequence, tile * kQueries, kQueries);
      if (!any.touches(0, static_cast<int>(problem.key_length))) {
        for (int h = 0; h < heads_per_group; ++h) {
          store_query_grad<FlashBackwardKernel>(args, zeros, sequence, group * heads_per_group + h,
                                                tile);
        }
      }
    }
  }

  __device__ __forceinline__ void run() {
    const int key_tiles = static_cast<int>((problem.key_length + kKeys - 1) / kKeys);
    if (args.splits == 1) {
      clear_unseen();
    }
    // The largest tile congruent to `split`.
    for (int tile = (key_tiles - 1 - split) / args.splits * args.splits + split; tile >= 0;
         tile -= args.splits) {
      run_key_tile(tile);
    }
  }
};

template <class Kernel>
__global__ void __launch_bounds__(Kernel::kThreads, Kernel::kBlocksPerProcessor)
    flash_backward(const __grid_constant__ FlashBackward args) {
  extern __shared__ __align__(128) unsigned char shared[];
  const unsigned groups = static_cast<unsigned>(args.k.problem.num_groups);
  const unsigned splits = static_cast<unsigned>(args.splits);
  const unsigned place = blockIdx.x / splits;
  Kernel(args, static_cast<int>(place / groups), static_cast<int>(place % groups),
         static_cast<int>(blockIdx.x % splits), shared_address(shared))
      .run();
}

template <template <class, int, bool, bool> class Kernels>
void run_flash_backward(Stream& stream, const AttentionBackward& k) {
  const bool vectors = vector_access(k.problem, {k.q, k.k, k.v, k.grad_q, k.grad_k, k.grad_v},
                                     {k.out.data, k.grad_out.data});
  dispatch_flash<Kernels>(k.problem, vectors, [&]<class Kernel>() {
    run_backward<Kernel>(stream, k, [&](const FlashBackward& args, std::int64_t num_blocks) {
      launch_flash(stream, flash_backward<Kernel>, num_blocks, Kernel::kThreads,
                   Kernel::kSharedBytes, args, "flash_backward");
    });
  });
}

}  // namespace bloomery::attention_cuda
