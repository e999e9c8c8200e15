// Flash attention, forward, for sm_90a: a block owns 64 queries per consumer warpgroup of one head.
// One thread of a further warpgroup keeps the copy engine busy; the consumers walk the keys in
// tiles with an online softmax, as in flash_forward_sm80.cuh. While the tensor cores work on the
// values of one tile, a consumer draws the dropout bits of the next.
#pragma once

#include "ops/attention/dropout_bits_sm90.cuh"
#include "ops/attention/flash_common_sm80.cuh"
#include "ops/attention/pipeline_sm90.cuh"

namespace bloomery::attention_cuda {

struct FlashForward90 {
  AttentionForward k;
  CUtensorMap queries, keys, values;
  DropoutKeys dropout_keys;
  float scale_log2;     // score scale times log2(e)
  float dropout_scale;  // one without dropout
};

template <class T_, int kDim_, bool kDropout_>
struct FlashForwardKernel90 {
  using T = T_;
  static constexpr int kDim = kDim_;  // head_dim rounded up
  static constexpr bool kDropout = kDropout_;
  // Where little is to be multiplied per tile, two small blocks hide more of each other's waits.
  static constexpr int kBlocksPerProcessor = kDim == 64 ? 2 : 1;
  static constexpr int kConsumers = kDim == 64 ? 1 : 2, kQueries = 64 * kConsumers;
  static constexpr int kKeys = 128, kStages = 2;
  static constexpr int kThreads = kWarpgroup * (kConsumers + 1);
  // Of the registers that each thread starts with, the producers keep a few; the consumers share
  // the rest. All counts are multiples of eight.
  static constexpr int kRegisters = 65536 / (kThreads * kBlocksPerProcessor) / 8 * 8;
  static constexpr int kProducerRegisters = 24;
  static constexpr int kConsumerRegisters =
      (kRegisters * (kConsumers + 1) - kProducerRegisters) / kConsumers / 8 * 8;
  static constexpr int kKeyPieces = kKeys / 8, kDimPieces = kDim / 8;
  using QueryTile = PanelTile<kQueries, kDim>;
  using KeyTile = PanelTile<kKeys, kDim>;
  using Scores = float[kKeys / 2];
  using Probabilities = std::uint32_t[kKeys / 16][4];
  using Output = float[kDim / 2];
  using Bits = RandomBlock[2][kKeys / 32];  // [row held][group of 32 keys]

  static constexpr int kTileBytes = QueryTile::kBytes + 2 * kStages * KeyTile::kBytes;
  static constexpr int kNumBarriers = 1 + 4 * kStages;
  static constexpr int kSharedBytes = 1024 + kTileBytes + 8 * kNumBarriers;

  const FlashForward90& args;
  const AttentionProblem& problem;
  const int sequence, head, first_query;
  const std::uint32_t shared;
  KeyRange tiles;  // of keys, for the block

  __device__ FlashForwardKernel90(const FlashForward90& args_, int sequence_, int head_, int first,
                                  std::uint32_t shared_)
      : args(args_),
        problem(args_.k.problem),
        sequence(sequence_),
        head(head_),
        first_query(first),
        shared(shared_),
        tiles(tiles_of(first, kQueries)) {}

  __device__ __forceinline__ QueryTile queries() const { return {shared}; }
  __device__ __forceinline__ KeyTile keys(int stage) const {
    return {shared + QueryTile::kBytes + stage * KeyTile::kBytes};
  }
  __device__ __forceinline__ KeyTile values(int stage) const { return keys(kStages + stage); }
  __device__ __forceinline__ SharedBarrier barrier(int number) const {
    return {shared + kTileBytes + 8 * number};
  }
  __device__ __forceinline__ SharedBarrier queries_there() const { return barrier(0); }
  __device__ __forceinline__ SharedBarrier keys_there(int stage) const {
    return barrier(1 + stage);
  }
  __device__ __forceinline__ SharedBarrier keys_free(int stage) const {
    return barrier(1 + kStages + stage);
  }
  __device__ __forceinline__ SharedBarrier values_there(int stage) const {
    return barrier(1 + 2 * kStages + stage);
  }
  __device__ __forceinline__ SharedBarrier values_free(int stage) const {
    return barrier(1 + 3 * kStages + stage);
  }

  // Key tiles that any of these queries sees, possibly none.
  __device__ __forceinline__ KeyRange tiles_of(int first, int count) const {
    if (first >= problem.query_length) {
      return {0, 0};
    }
    const KeyRange any = seen_by_any(problem, sequence, first, count);
    return any.begin < any.end ? KeyRange{any.begin / kKeys, (any.end + kKeys - 1) / kKeys}
                               : KeyRange{0, 0};
  }

  __device__ __forceinline__ void initialise_barriers() const {
    if (threadIdx.x == 0) {
      queries_there().initialise(1);
#pragma unroll
      for (int stage = 0; stage < kStages; ++stage) {
        keys_there(stage).initialise(1);
        values_there(stage).initialise(1);
        keys_free(stage).initialise(4 * kConsumers);
        values_free(stage).initialise(4 * kConsumers);
      }
      fence_barriers();
    }
    __syncthreads();
  }

  // One thread: all copies of the block.
  __device__ __forceinline__ void produce() const {
    const int per_group = static_cast<int>(problem.num_heads / problem.num_groups);
    const HeadCoordinates query_at{head % per_group, head / per_group, sequence};
    const HeadCoordinates key_at{0, head / per_group, sequence};
    if (tiles.begin < tiles.end) {
      queries_there().arrive_expecting(QueryTile::kBytes);
      copy_tile(queries(), args.queries, query_at, first_query, queries_there());
    }
    for (int tile = tiles.begin; tile < tiles.end; ++tile) {
      const int step = tile - tiles.begin, stage = step % kStages, round = step / kStages;
      if (round > 0) {
        keys_free(stage).wait(round - 1);
      }
      keys_there(stage).arrive_expecting(KeyTile::kBytes);
      copy_tile(keys(stage), args.keys, key_at, tile * kKeys, keys_there(stage));
      if (round > 0) {
        values_free(stage).wait(round - 1);
      }
      values_there(stage).arrive_expecting(KeyTile::kBytes);
      copy_tile(values(stage), args.values, key_at, tile * kKeys, values_there(stage));
    }
  }
};

// One warpgroup's share: 64 rows of scores and output, as accumulators of its products.
template <class Block>
struct FlashConsumer90 {
  using T = typename Block::T;
  using Scores = typename Block::Scores;
  using Bits = typename Block::Bits;
  using Probabilities = typename Block::Probabilities;
  static constexpr int kDim = Block::kDim, kKeys = Block::kKeys, kStages = Block::kStages;
  static constexpr int kKeyPieces = Block::kKeyPieces, kDimPieces = Block::kDimPieces;

  const Block& block;
  const AttentionProblem& problem;
  const int group_row;    // first row of this warpgroup within the block
  const int first_query;  // of this warp
  const int lane;
  typename Block::Output out;
  float row_max[2], row_sum[2];  // sum: of this thread's elements only
  QueryDropout dropout[2];

  __device__ __forceinline__ FlashConsumer90(const Block& block_, int number)
      : block(block_),
        problem(block_.problem),
        group_row(64 * number),
        first_query(block_.first_query + 64 * number +
                    static_cast<int>(threadIdx.x) % kWarpgroup / kWarpSize * 16),
        lane(static_cast<int>(threadIdx.x) % kWarpSize) {
#pragma unroll
    for (float& x : out) {
      x = 0;
    }
    const int last = static_cast<int>(problem.query_length) - 1;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      row_max[r] = -INFINITY;
      row_sum[r] = 0;
      if constexpr (Block::kDropout) {
        dropout[r] = QueryDropout(block.args.dropout_keys, problem.places.samples[block.sequence],
                                  problem.places.places[min(query(r), last)],
                                  static_cast<std::uint32_t>(problem.first_head + block.head));
      }
    }
  }

  // Query of this thread's row r.
  __device__ __forceinline__ int query(int r) const { return first_query + r * 8 + lane / 4; }

  __device__ __forceinline__ void start_keys(Scores& scores, int stage) const {
    const auto queries = block.queries();
    const auto keys = block.keys(stage);
#pragma unroll
    for (int k = 0; k < kDim; k += 16) {
      WarpgroupProduct<T, kKeys>::template run<false, false>(
          scores, queries.along_rows(group_row, k), keys.along_rows(0, k), k > 0);
    }
  }
  __device__ __forceinline__ void start_values(const Probabilities& probabilities, int stage) {
    const auto values = block.values(stage);
#pragma unroll
    for (int k = 0; k < kKeys / 16; ++k) {
      WarpgroupProduct<T, kDim>::template run<true>(out, probabilities[k],
                                                    values.down_rows(16 * k, 0), true);
    }
  }

  __device__ __forceinline__ void mask(Scores& scores, int first_key) const {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const KeyRange range = query(r) < problem.query_length
                                 ? visible_keys(problem, block.sequence, query(r))
                                 : KeyRange{0, 0};
      const int begin = range.begin - first_key - lane % 4 * 2;
      const int end = range.end - first_key - lane % 4 * 2;
#pragma unroll
      for (int j = 0; j < kKeyPieces; ++j) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& score = scores[4 * j + 2 * r + e];
          score = 8 * j + e >= begin && 8 * j + e < end ? score : -INFINITY;
        }
      }
    }
  }
  __device__ __forceinline__ bool needs_mask(int first_key) const {
    if (first_query + 16 > problem.query_length) {
      return true;
    }
    const KeyRange every = seen_by_every(problem, block.sequence, first_query, 16);
    return first_key < every.begin || first_key + kKeys > every.end;
  }

  // Scores become exp2(scale * score - scale * maximum so far); output and sums follow the maximum.
  __device__ __forceinline__ void softmax(Scores& scores) {
    const float scale = block.args.scale_log2;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float highest[2] = {row_max[r], row_max[r]};  // two chains, which run side by side
#pragma unroll
      for (int j = 0; j < kKeyPieces; ++j) {
        highest[0] = fmaxf(highest[0], scores[4 * j + 2 * r]);
        highest[1] = fmaxf(highest[1], scores[4 * j + 2 * r + 1]);
      }
      const float maximum = quad_max(fmaxf(highest[0], highest[1]));
      // A row that has seen no key keeps the maximum -inf and must not subtract it.
      const float shift = maximum == -INFINITY ? 0.0f : maximum * scale;
      const float correction = exp2_approximate(row_max[r] * scale - shift);
      row_max[r] = maximum;
      float sums[2] = {row_sum[r] * correction, 0};
#pragma unroll
      for (int j = 0; j < kKeyPieces; ++j) {
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& score = scores[4 * j + 2 * r + e];
          score = exp2_approximate(score * scale - shift);
          sums[e] += score;
        }
      }
      row_sum[r] = sums[0] + sums[1];
#pragma unroll
      for (int j = 0; j < kDimPieces; ++j) {
        out[4 * j + 2 * r] *= correction;
        out[4 * j + 2 * r + 1] *= correction;
      }
    }
  }

  __device__ __forceinline__ void draw(Bits& bits, int first_key) const {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
#pragma unroll
      for (int n = 0; n < kKeys / 32; ++n) {
        const auto key = static_cast<std::uint32_t>(first_key + 32 * n + lane % 4 * 2);
        bits[r][n] = dropout[r](block.args.dropout_keys, attention_dropout_block(key));
      }
    }
  }
  // See RowDropout.
  __device__ __forceinline__ void drop(Scores& scores, const Bits& bits) const {
    const std::uint32_t shifted_threshold = problem.dropout_threshold << 16;
#pragma unroll
    for (int j = 0; j < kKeyPieces; ++j) {
#pragma unroll
      for (int r = 0; r < 2; ++r) {
        const std::uint32_t word = bits[r][j / 4][j % 4];
        zero_if_less(scores[4 * j + 2 * r], word << 16, shifted_threshold);
        zero_if_less(scores[4 * j + 2 * r + 1], word, shifted_threshold);
      }
    }
  }

  __device__ __forceinline__ static void round(const Scores& scores, Probabilities& result) {
#pragma unroll
    for (int k = 0; k < kKeys / 16; ++k) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        result[k][i] = pack_pair<T>(scores[8 * k + 2 * i], scores[8 * k + 2 * i + 1]);
      }
    }
  }

  // Tiles that this warpgroup does not look at still have to be handed back.
  __device__ __forceinline__ void skip(int from, int to) const {
    for (int step = from; step < to; ++step) {
      const int stage = step % kStages;
      block.keys_there(stage).wait(step / kStages);
      block.values_there(stage).wait(step / kStages);
      if (lane == 0) {
        block.keys_free(stage).arrive();
        block.values_free(stage).arrive();
      }
    }
  }

  __device__ __forceinline__ void store() {
    const HeadRows<T> rows =
        output_rows<T>(block.args.k.out.data, problem, block.sequence, block.head);
    float factors[2];
    float* lse = static_cast<float*>(block.args.k.lse.data);
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float sum = quad_sum(row_sum[r]);
      factors[r] = sum == 0 ? 0.0f : block.args.dropout_scale / sum;
      if (lse != nullptr && lane % 4 == 0 && query(r) < problem.query_length) {
        const std::int64_t row = block.sequence * problem.num_heads + block.head;
        lse[row * problem.query_length + query(r)] =
            sum == 0 ? -INFINITY : row_max[r] * problem.scale + logf(sum);
      }
    }
#pragma unroll
    for (int j = 0; j < kDimPieces; ++j) {
      const float piece[4] = {out[4 * j], out[4 * j + 1], out[4 * j + 2], out[4 * j + 3]};
      store_piece<true>(rows, first_query, 8 * j, piece, factors[0], factors[1]);
    }
  }

  // Multiplies by the keys of `step` and waits for all products. The dropout bits are drawn first,
  // while the products before this one run: they are pinned to the near side of the barrier,
  // because the compiler would rather draw where it has nothing else to do.
  __device__ __forceinline__ void multiply_keys(Scores& scores, Bits& bits, int step) {
    const int stage = step % kStages;
    if constexpr (Block::kDropout) {
      draw(bits, (block.tiles.begin + step) * kKeys);
#pragma unroll
      for (int i = 0; i < kKeys / 4; ++i) {
        asm volatile("" : "+r"(bits[i / (kKeys / 8)][i / 4 % (kKeys / 32)][i % 4])::"memory");
      }
    }
    block.keys_there(stage).wait(step / kStages);
    pin(scores);
    fence_products();
    start_keys(scores, stage);
    commit_products();
    wait_products();
    pin(scores);
    pin(out);
    if (lane == 0) {
      block.keys_free(stage).arrive();
    }
  }

  __device__ __forceinline__ void run() {
    const KeyRange own = block.tiles_of(block.first_query + group_row, 64);
    const int all = block.tiles.end - block.tiles.begin;
    const int begin = own.begin < own.end ? own.begin - block.tiles.begin : all;
    const int end = own.begin < own.end ? own.end - block.tiles.begin : all;
    skip(0, begin);
    Scores scores;
    Bits bits;
    if (begin < end) {
      block.queries_there().wait(0);
      multiply_keys(scores, bits, begin);
    }
    for (int step = begin; step < end; ++step) {
      const int stage = step % kStages, first_key = (block.tiles.begin + step) * kKeys;
      if (needs_mask(first_key)) {
        mask(scores, first_key);
      }
      softmax(scores);
      if constexpr (Block::kDropout) {
        drop(scores, bits);
      }
      Probabilities probabilities;
      round(scores, probabilities);
      block.values_there(stage).wait(step / kStages);
      pin(out);
      fence_products();
      start_values(probabilities, stage);
      commit_products();
      if (step + 1 < end) {
        multiply_keys(scores, bits, step + 1);
      } else {
        wait_products();
        pin(out);
      }
      if (lane == 0) {
        block.values_free(stage).arrive();
      }
    }
    skip(end, all);
    store();
  }
};

template <class Kernel>
__global__ void __launch_bounds__(Kernel::kThreads, Kernel::kBlocksPerProcessor)
    flash_forward_90(const __grid_constant__ FlashForward90 args) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ unsigned char shared[];
  const AttentionProblem& problem = args.k.problem;
  // Queries that see most keys under a causal mask come first, so that the last blocks are short.
  const unsigned tiles =
      static_cast<unsigned>((problem.query_length + Kernel::kQueries - 1) / Kernel::kQueries);
  const unsigned tile = tiles - 1 - blockIdx.x % tiles, place = blockIdx.x / tiles;
  const unsigned heads = static_cast<unsigned>(problem.num_heads);
  const Kernel kernel(args, static_cast<int>(place / heads), static_cast<int>(place % heads),
                      static_cast<int>(tile) * Kernel::kQueries,
                      (shared_address(shared) + 1023) / 1024 * 1024);
  kernel.initialise_barriers();
  if (threadIdx.x < kWarpgroup) {
    keep_registers<Kernel::kProducerRegisters>();
    if (threadIdx.x == 0) {
      kernel.produce();
    }
  } else {
    take_registers<Kernel::kConsumerRegisters>();
    FlashConsumer90<Kernel>(kernel, static_cast<int>(threadIdx.x) / kWarpgroup - 1).run();
  }
#endif
}

}  // namespace bloomery::attention_cuda
