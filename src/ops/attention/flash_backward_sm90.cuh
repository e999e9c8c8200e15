// Flash attention, backward, for sm_90a: the formulas, the walk and the treatment of dQ are those
// of flash_backward_sm80.cuh. Two consumer warpgroups own 64 keys each of the block's key tile and
// hold the transposed scores, keys down and queries across, so that they are the operand of dV and
// dK as they stand in registers; only dS passes through shared memory, for dQ. A third warpgroup
// starts the copies, and draws the dropout bits while the others multiply.
#pragma once

#include "ops/attention/dropout_bits_sm90.cuh"
#include "ops/attention/flash_backward_common.cuh"
#include "ops/attention/pipeline_sm90.cuh"

namespace bloomery::attention_cuda {

struct FlashBackward90 {
  FlashBackward base;
  CUtensorMap queries, grads_out, keys, values;
  DropoutKeys dropout_keys;
};

template <class T_, int kDim_, bool kDropout_>
struct FlashBackwardKernel90 {
  using T = T_;
  static constexpr int kDim = kDim_;                      // head_dim rounded up
  static constexpr int kColumns = kDim == 64 ? 64 : 128;  // of the tiles: whole panels of 64
  static constexpr bool kDropout = kDropout_;
  static constexpr bool kVectors = true;
  static constexpr int kQueries = kDim == 64 ? 128 : 64, kKeys = 128;
  static constexpr int kThreads = 2 * kWarpgroup, kBlockThreads = 3 * kWarpgroup;  // consumers, all
  static constexpr int kBlocksPerProcessor = 1;
  // Warps' shares of dQ: each warpgroup 64 queries and 64 channels, of which some may not exist.
  static constexpr int kQueryDown = kQueries / 16, kQueryRows = 16, kQueryColumns = 64;
  static constexpr int kPieces = kQueryColumns / 8;
  using QueryGrad = float[1][kPieces][4];
  using KeyTile = PanelTile<kKeys, kColumns>;
  using QueryTile = PanelTile<kQueries, kColumns>;
  using ScoreTile = PanelTile<kKeys, kQueries>;

  // Dropout bits, [block of keys][lane % 4][queries that such a lane holds], one byte each: bit i
  // says that lane i of the block drops its element.
  static constexpr int kBlocksOfKeys = kKeys / 8, kLaneQueries = kQueries / 4;
  static constexpr int kMaskBytes = kBlocksOfKeys * kQueries;
  static constexpr int kTileBytes =
      2 * KeyTile::kBytes + 4 * QueryTile::kBytes + 2 * ScoreTile::kBytes;
  static constexpr int kStatisticsBytes = 2 * kQueries * 4;  // lse, then delta
  static constexpr int kMasksAt = kTileBytes, kStatisticsAt = kMasksAt + 2 * kMaskBytes;
  static constexpr int kBarriersAt = kStatisticsAt + 2 * kStatisticsBytes;
  static constexpr int kSharedBytes = 1024 + kBarriersAt + 8 * 6;

  const FlashBackward90& all_args;
  const FlashBackward& args;
  const AttentionProblem& problem;
  const int sequence, group, split, heads_per_group;
  const std::uint32_t shared;

  __device__ FlashBackwardKernel90(const FlashBackward90& args_, int sequence_, int group_,
                                   int split_, std::uint32_t shared_)
      : all_args(args_),
        args(args_.base),
        problem(args_.base.k.problem),
        sequence(sequence_),
        group(group_),
        split(split_),
        heads_per_group(static_cast<int>(problem.num_heads / problem.num_groups)),
        shared(shared_) {}

  __device__ __forceinline__ KeyTile keys() const { return {shared}; }
  __device__ __forceinline__ KeyTile values() const { return {shared + KeyTile::kBytes}; }
  __device__ __forceinline__ QueryTile queries(int stage) const {
    return {shared + 2 * KeyTile::kBytes + stage * QueryTile::kBytes};
  }
  __device__ __forceinline__ QueryTile grads_out(int stage) const { return queries(2 + stage); }
  __device__ __forceinline__ ScoreTile grad_scores(int stage) const {
    return {shared + 2 * KeyTile::kBytes + 4 * QueryTile::kBytes + stage * ScoreTile::kBytes};
  }
  __device__ __forceinline__ std::uint32_t masks(int stage) const {
    return shared + kMasksAt + stage * kMaskBytes;
  }
  __device__ __forceinline__ std::uint32_t lse(int stage) const {
    return shared + kStatisticsAt + stage * kStatisticsBytes;
  }
  __device__ __forceinline__ std::uint32_t delta(int stage) const {
    return lse(stage) + kQueries * 4;
  }
  __device__ __forceinline__ SharedBarrier barrier(int number) const {
    return {shared + kBarriersAt + 8 * number};
  }
  __device__ __forceinline__ SharedBarrier keys_there() const { return barrier(0); }
  __device__ __forceinline__ SharedBarrier keys_free() const { return barrier(1); }
  __device__ __forceinline__ SharedBarrier queries_there(int stage) const {
    return barrier(2 + stage);
  }
  __device__ __forceinline__ SharedBarrier queries_free(int stage) const {
    return barrier(4 + stage);
  }

  __device__ __forceinline__ void initialise_barriers() const {
    if (threadIdx.x == 0) {
      keys_there().initialise(1);
      keys_free().initialise(kThreads / kWarpSize);
#pragma unroll
      for (int stage = 0; stage < 2; ++stage) {
        queries_there(stage).initialise(kWarpgroup);
        // Every consumer arrives by itself: it has read statistics and dropout bits by itself.
        queries_free(stage).initialise(kThreads);
      }
      fence_barriers();
    }
    __syncthreads();
  }

  // The query tiles that a key tile meets, of one head of the group after the other. Up and down
  // in turn: what was added to dQ last is still in the cache when it comes first.
  struct Steps {
    int per_head, count, start, direction;
    __device__ __forceinline__ int query_tile(int step) const {
      return start + direction * (step % per_head);
    }
  };
  __device__ __forceinline__ Steps steps_of(int key_tile) const {
    const KeyRange tiles = query_tiles_of<kQueries, kKeys>(problem, sequence, key_tile * kKeys);
    const bool up = key_tile / args.splits % 2 == 0;
    const int per_head = max(tiles.end - tiles.begin, 0);
    return {per_head, per_head * heads_per_group, up ? tiles.begin : tiles.end - 1, up ? 1 : -1};
  }
  // Calls body(key_tile, steps) for the key tiles of this block, from the last to the first.
  template <class Body>
  __device__ __forceinline__ void for_key_tiles(const Body& body) const {
    const int key_tiles = static_cast<int>((problem.key_length + kKeys - 1) / kKeys);
    for (int tile = (key_tiles - 1 - split) / args.splits * args.splits + split; tile >= 0;
         tile -= args.splits) {
      body(tile, steps_of(tile));
    }
  }
};

// The warpgroup that fetches and draws.
template <class Block>
struct FlashBackwardProducer90 {
  static constexpr int kQueries = Block::kQueries, kKeys = Block::kKeys;
  const Block& block;
  const AttentionProblem& problem;
  const int thread;

  __device__ __forceinline__ explicit FlashBackwardProducer90(const Block& block_)
      : block(block_),
        problem(block_.problem),
        thread(static_cast<int>(threadIdx.x) % kWarpgroup) {}

  // The log-sum-exp in units of log2, and delta. Queries without keys, and rows past the end, get
  // +inf, so that their probabilities are zero.
  __device__ __forceinline__ void fill_statistics(int stage, int head, int first_query) const {
    const std::int64_t row = (block.sequence * problem.num_heads + head) * problem.query_length;
    const float* all_lse = static_cast<const float*>(block.args.k.lse.data) + row;
    const float* all_delta = block.args.delta + row;
#pragma unroll
    for (int i = thread; i < 2 * kQueries; i += kWarpgroup) {
      const int query = first_query + i % kQueries;
      const bool exists = query < problem.query_length;
      float value = 0;
      if (i >= kQueries) {
        value = exists ? all_delta[query] : 0.0f;
      } else {
        value = exists ? all_lse[query] : -INFINITY;
        value = value == -INFINITY ? INFINITY : value * kLog2E;
      }
      store_shared(block.lse(stage) + 4 * i, __float_as_uint(value));
    }
  }

  __device__ __forceinline__ void draw(int stage, int head, int first_query, int first_key) const {
    constexpr int kBlocks = kQueries / 8;  // per thread
    const int column = thread % kQueries, first_block = thread / kQueries * kBlocks;
    const int query = min(first_query + column, static_cast<int>(problem.query_length) - 1);
    const QueryDropout dropout(block.all_args.dropout_keys, problem.places.samples[block.sequence],
                               problem.places.places[query],
                               static_cast<std::uint32_t>(problem.first_head + head));
    const std::uint32_t shifted_threshold = problem.dropout_threshold << 16;
    const std::uint32_t block_of_tile = attention_dropout_block(first_key) + first_block;
    const std::uint32_t to = block.masks(stage) + first_block * kQueries +
                             column % 8 / 2 * Block::kLaneQueries + column / 8 * 2 + column % 2;
#pragma unroll 2
    for (int n = 0; n < kBlocks; ++n) {
      const RandomBlock bits = dropout(block.all_args.dropout_keys, block_of_tile + n);
      std::uint32_t dropped = 0;
#pragma unroll
      for (int word = 0; word < 4; ++word) {
        dropped |= (bits[word] << 16) < shifted_threshold ? 1u << (2 * word) : 0u;
        dropped |= bits[word] < shifted_threshold ? 2u << (2 * word) : 0u;
      }
      asm volatile("st.shared.u8 [%0], %1;\n" ::"r"(to + n * kQueries), "r"(dropped) : "memory");
    }
  }

  __device__ __forceinline__ void run() const {
    int round = 0, count = 0;  // key tiles and query tiles so far
    block.for_key_tiles([&](int key_tile, const auto& steps) {
      const int first_key = key_tile * kKeys;
      if (steps.count > 0 && thread == 0) {
        if (round > 0) {
          block.keys_free().wait(round - 1);
        }
        const HeadCoordinates at{0, block.group, block.sequence};
        block.keys_there().arrive_expecting(2 * Block::KeyTile::kBytes);
        copy_tile(block.keys(), block.all_args.keys, at, first_key, block.keys_there());
        copy_tile(block.values(), block.all_args.values, at, first_key, block.keys_there());
      }
      round += steps.count > 0 ? 1 : 0;
      for (int step = 0; step < steps.count; ++step, ++count) {
        const int stage = count % 2, first_query = steps.query_tile(step) * kQueries;
        const int head_in_group = step / steps.per_head;
        const int head = block.group * block.heads_per_group + head_in_group;
        if (count >= 2) {
          block.queries_free(stage).wait(count / 2 - 1);
        }
        const SharedBarrier there = block.queries_there(stage);
        if (thread == 0) {
          const HeadCoordinates at{head_in_group, block.group, block.sequence};
          there.expect(2 * Block::QueryTile::kBytes);
          copy_tile(block.queries(stage), block.all_args.queries, at, first_query, there);
          copy_tile(block.grads_out(stage), block.all_args.grads_out, at, first_query, there);
        }
        fill_statistics(stage, head, first_query);
        if constexpr (Block::kDropout) {
          draw(stage, head, first_query, first_key);
        }
        there.arrive();
      }
    });
  }
};

}  // namespace bloomery::attention_cuda
