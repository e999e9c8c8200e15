// Flash attention, forward: a block of four warps owns 128 queries of one head and walks the keys
// in tiles of 64 with an online softmax. Each warp keeps its 32 rows of scores and of the output in
// registers, so that probabilities go from the first product to the second without leaving them.
#pragma once

#include "ops/attention/flash_common_sm80.cuh"
#include "ops/attention/flash_launch_sm80.cuh"

namespace bloomery::attention_cuda {

struct FlashForward {
  AttentionForward k;
  float scale_log2;     // score scale times log2(e)
  float dropout_scale;  // one without dropout
};

template <class T_, int kDim_, bool kDropout_, bool kVectors_, bool kBias_>
struct FlashForwardKernel {
  using T = T_;
  static constexpr int kDim = kDim_;  // head_dim rounded up
  static constexpr bool kDropout = kDropout_;
  static constexpr bool kVectors = kVectors_;  // see load_tile
  static constexpr bool kBias = kBias_;
  static constexpr int kQueries = 128, kKeys = 64, kThreads = 128;
  static constexpr int kWarpRows = kQueries / (kThreads / kWarpSize);
  static constexpr int kRowPieces = kWarpRows / 16;  // accumulator pieces downwards
  static constexpr int kRowsHeld = 2 * kRowPieces;   // rows of which a thread holds elements
  static constexpr int kKeyPieces = kKeys / 8, kDimPieces = kDim / 8;
  static constexpr bool kKeepQueries = kDim <= 64 && !kDropout;  // fragments of Q fit in registers
  static constexpr int kQueryBytes = kQueries * kDim * 2, kKeyBytes = kKeys * kDim * 2;
  static constexpr int kSharedBytes = kQueryBytes + 4 * kKeyBytes;
  using Scores = float[kRowPieces][kKeyPieces][4];
  using Output = float[kRowPieces][kDimPieces][4];
  using Tile = SharedTile<kDim>;

  const FlashForward& args;
  const AttentionProblem& problem;
  const int sequence, head, first_query;
  const int warp_row, lane;          // first row of this warp within the block
  const Tile queries, keys, values;  // keys and values: two buffers each, kKeyBytes apart
  std::uint32_t query_fragments[kKeepQueries ? kDim / 16 : 1][kRowPieces][4];
  Output out;
  float row_max[kRowsHeld], row_sum[kRowsHeld];  // sum: of this thread's elements only

  __device__ FlashForwardKernel(const FlashForward& args_, int sequence_, int head_, int first,
                                std::uint32_t shared)
      : args(args_),
        problem(args_.k.problem),
        sequence(sequence_),
        head(head_),
        first_query(first),
        warp_row(static_cast<int>(threadIdx.x) / kWarpSize * kWarpRows),
        lane(static_cast<int>(threadIdx.x) % kWarpSize),
        queries{shared},
        keys{shared + kQueryBytes},
        values{shared + kQueryBytes + 2 * kKeyBytes} {
    clear(out);
#pragma unroll
    for (int r = 0; r < kRowsHeld; ++r) {
      row_max[r] = -INFINITY;
      row_sum[r] = 0;
    }
  }

  // Query of this thread's row r: rows g and g + 8 of each piece.
  __device__ __forceinline__ int query(int r) const {
    return first_query + warp_row + r * 8 + lane / 4;
  }

  __device__ __forceinline__ void load_query_fragments() {
    if constexpr (kKeepQueries) {
#pragma unroll
      for (int k = 0; k < kDim / 16; ++k) {
#pragma unroll
        for (int i = 0; i < kRowPieces; ++i) {
          queries.load_a(query_fragments[k][i], warp_row + 16 * i, 16 * k);
        }
      }
    }
  }

  __device__ __forceinline__ void multiply_keys(Scores& scores, const Tile& tile) {
    clear(scores);
    if constexpr (!kKeepQueries) {
      warp_multiply<T, kDim, Side::plain, Side::plain>(scores, queries, warp_row, 0, tile, 0, 0);
    } else {
#pragma unroll
      for (int k = 0; k < kDim / 16; ++k) {
#pragma unroll
        for (int j = 0; j < kKeyPieces; j += 2) {
          std::uint32_t b[4];
          tile.load_b(b, 8 * j, 16 * k);
#pragma unroll
          for (int i = 0; i < kRowPieces; ++i) {
            multiply_add<T>(scores[i][j], query_fragments[k][i], b[0], b[1]);
            multiply_add<T>(scores[i][j + 1], query_fragments[k][i], b[2], b[3]);
          }
        }
      }
    }
  }

  __device__ __forceinline__ void add_bias(Scores& scores, int first_key) const {
    const HeadBias bias(problem, head);
    const int offset = static_cast<int>(problem.key_length - problem.query_length);
#pragma unroll
    for (int r = 0; r < kRowsHeld; ++r) {
      const int nearest = first_key + lane % 4 * 2 - query(r) - offset;
#pragma unroll
      for (int j = 0; j < kKeyPieces; ++j) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          scores[r / 2][j][r % 2 * 2 + e] += bias.at(nearest + 8 * j + e);
        }
      }
    }
  }

  __device__ __forceinline__ void mask(Scores& scores, int first_key) const {
#pragma unroll
    for (int r = 0; r < kRowsHeld; ++r) {
      const int row = query(r);
      const KeyRange range =
          row < problem.query_length ? visible_keys(problem, sequence, row) : KeyRange{0, 0};
#pragma unroll
      for (int j = 0; j < kKeyPieces; ++j) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          const int key = first_key + 8 * j + lane % 4 * 2 + e;
          float& score = scores[r / 2][j][r % 2 * 2 + e];
          score = key >= range.begin && key < range.end ? score : -INFINITY;
        }
      }
    }
  }

  // Scores become exp2(scale * score - scale * maximum so far); output and sums follow the maximum.
  __device__ __forceinline__ void softmax(Scores& scores) {
#pragma unroll
    for (int r = 0; r < kRowsHeld; ++r) {
      const int i = r / 2, h = r % 2 * 2;
      float maximum = row_max[r];
#pragma unroll
      for (int j = 0; j < kKeyPieces; ++j) {
        maximum = fmaxf(maximum, fmaxf(scores[i][j][h], scores[i][j][h + 1]));
      }
      maximum = quad_max(maximum);
      // A row that has seen no key keeps the maximum -inf and must not subtract it.
      const float shift = maximum == -INFINITY ? 0.0f : maximum * args.scale_log2;
      const float correction = exp2_approximate(row_max[r] * args.scale_log2 - shift);
      row_max[r] = maximum;
      float sum = row_sum[r] * correction;
#pragma unroll
      for (int j = 0; j < kKeyPieces; ++j) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& score = scores[i][j][h + e];
          score = exp2_approximate(score * args.scale_log2 - shift);
          sum += score;
        }
      }
      row_sum[r] = sum;
#pragma unroll
      for (int j = 0; j < kDimPieces; ++j) {
        out[i][j][h] *= correction;
        out[i][j][h + 1] *= correction;
      }
    }
  }

  __device__ __forceinline__ void drop(Scores& scores, int first_key) const {
    const RowDropout dropout(problem, sequence, head);
    const int last = static_cast<int>(problem.query_length) - 1;
#pragma unroll
    for (int r = 0; r < kRowsHeld; ++r) {
      const std::int32_t place = problem.places.places[min(query(r), last)];
#pragma unroll
      for (int j = 0; j < kKeyPieces; j += 4) {
        dropout.apply(place, first_key + 8 * j, [&](int column, int which, bool dropped) {
          float& score = scores[r / 2][j + column][r % 2 * 2 + which];
          score = dropped ? 0.0f : score;
        });
      }
    }
  }

  // The accumulator pieces of two neighbouring columns are one fragment of the next product's A.
  __device__ __forceinline__ void multiply_values(const Scores& scores, const Tile& tile) {
#pragma unroll
    for (int k = 0; k < kKeys / 16; ++k) {
      std::uint32_t a[kRowPieces][4];
#pragma unroll
      for (int i = 0; i < kRowPieces; ++i) {
        const auto& left = scores[i][2 * k];
        const auto& right = scores[i][2 * k + 1];
        a[i][0] = pack_pair<T>(left[0], left[1]);
        a[i][1] = pack_pair<T>(left[2], left[3]);
        a[i][2] = pack_pair<T>(right[0], right[1]);
        a[i][3] = pack_pair<T>(right[2], right[3]);
      }
#pragma unroll
      for (int j = 0; j < kDimPieces; j += 2) {
        std::uint32_t b[4];
        tile.load_b_transposed(b, 16 * k, 8 * j);
#pragma unroll
        for (int i = 0; i < kRowPieces; ++i) {
          multiply_add<T>(out[i][j], a[i], b[0], b[1]);
          multiply_add<T>(out[i][j + 1], a[i], b[2], b[3]);
        }
      }
    }
  }

  __device__ __forceinline__ void store() {
    const HeadRows<T> rows = output_rows<T>(args.k.out.data, problem, sequence, head);
    float factors[kRowsHeld];
    float* lse = static_cast<float*>(args.k.lse.data);
#pragma unroll
    for (int r = 0; r < kRowsHeld; ++r) {
      const float sum = quad_sum(row_sum[r]);
      factors[r] = sum == 0 ? 0.0f : args.dropout_scale / sum;
      if (lse != nullptr && lane % 4 == 0 && query(r) < problem.query_length) {
        const std::int64_t row = sequence * problem.num_heads + head;
        lse[row * problem.query_length + query(r)] =
            sum == 0 ? -INFINITY : row_max[r] * problem.scale + logf(sum);
      }
    }
#pragma unroll
    for (int i = 0; i < kRowPieces; ++i) {
#pragma unroll
      for (int j = 0; j < kDimPieces; ++j) {
        store_piece<kVectors>(rows, first_query + warp_row + 16 * i, 8 * j, out[i][j],
                              factors[2 * i], factors[2 * i + 1]);
      }
    }
  }

  __device__ __forceinline__ void run() {
    const int group = head / static_cast<int>(problem.num_heads / problem.num_groups);
    const auto key_source = key_rows<const T>(args.k.k, problem, sequence, group);
    const auto value_source = key_rows<const T>(args.k.v, problem, sequence, group);
    const auto query_source = query_rows<const T>(args.k.q, problem, sequence, head);
    const auto load_keys = [&](int tile) {
      const std::uint32_t buffer = tile % 2 * kKeyBytes;
      load_tile<kKeys, kThreads, kVectors>(Tile{keys.base + buffer}, key_source, tile * kKeys);
      load_tile<kKeys, kThreads, kVectors>(Tile{values.base + buffer}, value_source, tile * kKeys);
      commit_copies();
    };

    const KeyRange any = seen_by_any(problem, sequence, first_query, kQueries);
    const KeyRange every = seen_by_every(problem, sequence, first_query, kQueries);
    // A warp without queries sees nothing; the others skip tiles that none of their rows sees.
    const int warp_query = first_query + warp_row;
    const KeyRange warp_any = warp_query < problem.query_length
                                  ? seen_by_any(problem, sequence, warp_query, kWarpRows)
                                  : KeyRange{0, 0};
    const int begin = any.begin / kKeys;
    const int end = any.begin < any.end ? (any.end + kKeys - 1) / kKeys : begin;

    if (begin < end) {
      load_tile<kQueries, kThreads, kVectors>(queries, query_source, first_query);
      load_keys(begin);
    }
    for (int tile = begin; tile < end; ++tile) {
      wait_copies();
      __syncthreads();  // the tile is there for all, and all are done with the one before
      if (tile == begin) {
        load_query_fragments();
      }
      if (tile + 1 < end) {
        load_keys(tile + 1);
      }
      const int first_key = tile * kKeys, last_key = first_key + kKeys;
      if (!warp_any.touches(first_key, last_key)) {
        continue;
      }
      const std::uint32_t buffer = tile % 2 * kKeyBytes;
      Scores scores;
      multiply_keys(scores, Tile{keys.base + buffer});
      if constexpr (kBias) {
        add_bias(scores, first_key);
      }
      if (first_key < every.begin || last_key > every.end) {
        mask(scores, first_key);
      }
      softmax(scores);
      if constexpr (kDropout) {
        drop(scores, first_key);
      }
      multiply_values(scores, Tile{values.base + buffer});
    }
    store();
  }
};

template <class Kernel>
__global__ void __launch_bounds__(Kernel::kThreads, 2)
    flash_forward(const __grid_constant__ FlashForward args) {
  extern __shared__ __align__(128) unsigned char shared[];
  const AttentionProblem& problem = args.k.problem;
  // Queries that see most keys under a causal mask come first, so that the last blocks are short.
  const unsigned tiles =
      static_cast<unsigned>((problem.query_length + Kernel::kQueries - 1) / Kernel::kQueries);
  const unsigned tile = tiles - 1 - blockIdx.x % tiles, place = blockIdx.x / tiles;
  const unsigned heads = static_cast<unsigned>(problem.num_heads);
  Kernel(args, static_cast<int>(place / heads), static_cast<int>(place % heads),
         static_cast<int>(tile) * Kernel::kQueries, shared_address(shared))
      .run();
}

template <template <class, int, bool, bool> class Kernels>
void run_flash_forward(Stream& stream, const AttentionForward& k) {
  const AttentionProblem& problem = k.problem;
  const FlashForward args{.k = k,
                          .scale_log2 = problem.scale * kLog2E,
                          .dropout_scale = dropout_scale(problem.dropout_threshold)};
  const bool vectors = vector_access(problem, {k.q, k.k, k.v}, {k.out.data});
  dispatch_flash<Kernels>(problem, vectors, [&]<class Kernel>() {
    const std::int64_t tiles = (problem.query_length + Kernel::kQueries - 1) / Kernel::kQueries;
    launch_flash(stream, flash_forward<Kernel>, tiles * problem.num_heads * problem.num_sequences,
                 Kernel::kThreads, Kernel::kSharedBytes, args, "flash_forward");
  });
}

}  // namespace bloomery::attention_cuda
