#include "ops/cache/group_attention.h"
#include "ops/cache/group_attention_sm90.cuh"
#include "ops/common/dispatch_cuda.cuh"

namespace bloomery {
namespace {

using group_attention::Problem;

constexpr std::int64_t kFewestKeys = 128;  // of a block
constexpr std::int64_t kMostSplits = 8;    // of the keys: blocks of a cluster

bool aligned(const void* data) { return reinterpret_cast<std::uintptr_t>(data) % 16 == 0; }

bool applies(Stream& stream, const CachedAttention& k) {
  const CacheProblem& c = k.problem;
  return c.length == 1 && c.num_sequences > 0 && size_of(c.dtype) == 2 &&
         (c.head_dim == 64 || c.head_dim == 128) && k.bias == nullptr && aligned(k.cache.data) &&
         aligned(k.qkv.data) && aligned(k.out.data) &&
         c.num_sequences * c.num_groups <= INT32_MAX && c.heads_per_group <= 65535 &&
         c.capacity <= INT32_MAX / 2 && num_sm90_processors(stream) > 0;
}

group_attention::Turn turn_of(const Rotary& rotary) {
  group_attention::Turn turn{.positions = rotary.positions.as<std::int32_t>(),
                             .pairs = static_cast<int>(rotary.table.num_pairs),
                             .interleaved = rotary.interleaved,
                             .magnitude = static_cast<float>(rotary.table.magnitude),
                             .frequencies = {}};
  std::copy_n(rotary.table.frequencies.begin(), rotary.table.num_pairs, turn.frequencies);
  return turn;
}

template <int kHeadDim, int kWarps, class T>
void launch_warps(Stream& stream, const Problem& p, dim3 grid) {
  using S = group_attention::Shared<kHeadDim, kWarps, T>;
  launch_kernel(stream, group_attention::attend<kHeadDim, kWarps, T>,
                Blocks{.grid = grid,
                       .threads = S::kThreads,
                       .shared_bytes = sizeof(S),
                       .cluster = dim3(1, grid.y, 1)},
                p);
}

template <int kHeadDim, class T>
void launch_attention(Stream& stream, Problem p) {
  const CacheProblem& c = p.k.problem;
  const std::int64_t most_keys = p.k.window > 0 ? std::min(p.k.window, c.capacity) : c.capacity;
  const std::int64_t blocks = c.num_sequences * c.num_groups;
  const std::int64_t pieces = (c.heads_per_group + group_attention::kHeads - 1) /
                              group_attention::kHeads;  // of a group's heads
  const std::int64_t most = std::min(kMostSplits, (most_keys + kFewestKeys - 1) / kFewestKeys);
  const std::int64_t splits =
      std::clamp<std::int64_t>(num_sm90_processors(stream) / (blocks * pieces), 1, most);
  p.heads = static_cast<int>(c.heads_per_group);
  p.block_keys = static_cast<int>((most_keys + splits - 1) / splits);
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(splits),
                  static_cast<unsigned>(pieces));
  // As many warps as leave room for all blocks at a time.
  if (blocks * splits * pieces <= 2 * num_sm90_processors(stream)) {
    launch_warps<kHeadDim, 4, T>(stream, p, grid);
  } else {
    launch_warps<kHeadDim, 2, T>(stream, p, grid);
  }
}

template <class T>
void launch_type(Stream& stream, const Problem& p) {
  if (p.k.problem.head_dim == 64) {
    launch_attention<64, T>(stream, p);
  } else {
    launch_attention<128, T>(stream, p);
  }
}

}  // namespace

bool attend_groups(Stream& stream, const CachedAttention& k, const Rotary* rotary) {
  if (!applies(stream, k)) {
    return false;
  }
  const Problem p{.k = k, .turn = rotary != nullptr ? turn_of(*rotary) : group_attention::Turn{}};
  if (k.problem.dtype == DType::bf16) {
    launch_type<__nv_bfloat16>(stream, p);
  } else {
    launch_type<__half>(stream, p);
  }
  return true;
}

bool may_attend_turned(Stream& stream, const CachedAttention& k, const Rotary& rotary) {
  const CacheProblem& c = k.problem;
  return applies(stream, k) && rotary.data.data == k.qkv.data && rotary.data.dtype == c.dtype &&
         rotary.num_tokens == c.num_sequences && rotary.num_groups == c.num_groups &&
         rotary.heads == c.heads_per_group + 2 && rotary.turned + 1 == rotary.heads &&
         rotary.head_dim == c.head_dim && !rotary.inverse && rotary.table.num_pairs % 8 == 0;
}

}  // namespace bloomery
