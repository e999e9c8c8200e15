// What surrounds the main kernel of a flash backward.
#pragma once

#include "ops/attention/flash_backward_common.cuh"
#include "ops/attention/flash_launch_sm80.cuh"

namespace bloomery::attention_cuda {

// Into how many blocks the key tiles of one head are dealt out. A function of the shape alone, so
// that the same problem gives the same bits everywhere: the time of the slowest block, counted in
// key tiles on the multiprocessors of a large GPU, with some cost for each further copy of dQ.
inline int choose_splits(std::int64_t num_owners, std::int64_t key_tiles,
                         std::int64_t blocks_at_once, std::int64_t partial_bytes) {
  constexpr std::int64_t kMaxSplits = 32, kMaxPartialBytes = std::int64_t{4} << 30;
  constexpr double kCostOfSplit = 0.05;
  int best = 1;
  double best_cost = 0;
  for (int splits = 1; splits <= std::min(kMaxSplits, std::max<std::int64_t>(key_tiles, 1));
       ++splits) {
    if (splits > 1 && splits * partial_bytes > kMaxPartialBytes) {
      break;
    }
    const std::int64_t waves = (num_owners * splits + blocks_at_once - 1) / blocks_at_once;
    const std::int64_t tiles = (key_tiles + splits - 1) / splits;
    const double cost = static_cast<double>(waves * tiles) * (1 + kCostOfSplit * (splits - 1));
    if (splits == 1 || cost < best_cost) {
      best = splits;
      best_cost = cost;
    }
  }
  return best;
}

// Computes delta, calls launch_main(args, number of blocks), and adds up the splits.
template <class Kernel, class Launch>
void run_backward(Stream& stream, const AttentionBackward& k, const Launch& launch_main) {
  const AttentionProblem& problem = k.problem;
  const float scale = dropout_scale(problem.dropout_threshold);
  const Tensor delta = Tensor::empty(
      stream, DType::fp32, {problem.num_sequences, problem.num_heads, problem.query_length});
  attention_delta(stream, k, scale > 0 ? 1 / scale : 0.0f, delta);

  constexpr std::int64_t kProcessors = 132;
  const std::int64_t query_tiles = (problem.query_length + Kernel::kQueries - 1) / Kernel::kQueries;
  const std::int64_t key_tiles = (problem.key_length + Kernel::kKeys - 1) / Kernel::kKeys;
  const std::int64_t owners = problem.num_sequences * problem.num_groups;
  const std::int64_t tiles = problem.num_sequences * problem.num_heads * query_tiles;
  const std::int64_t elements = tiles * kPartialElements<Kernel>;
  const int splits = choose_splits(owners, key_tiles, kProcessors * Kernel::kBlocksPerProcessor,
                                   elements * static_cast<std::int64_t>(sizeof(float)));
  const Tensor partial = Tensor::empty(stream, DType::fp32, {splits * elements});
  const std::int64_t reach = std::max(problem.query_length, problem.key_length);
  const BiasPartials bias(stream, k, splits * problem.num_sequences, reach);
  const FlashBackward args{.k = k,
                           .delta = static_cast<const float*>(delta.data()),
                           .partial = static_cast<float*>(partial.data()),
                           .splits = splits,
                           .scale_log2 = problem.scale * kLog2E,
                           .dropout_scale = scale,
                           .bias_partial = bias.data(),
                           .bias_partial_reach = reach};
  launch_main(args, owners * splits);
  if (splits > 1) {
    launch_flash(stream, flash_add_splits<Kernel>, tiles, Kernel::kThreads, 0, args,
                 "flash_add_splits");
  }
  bias.add_up(problem.scale * scale);
}

}  // namespace bloomery::attention_cuda
