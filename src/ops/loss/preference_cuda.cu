#include "device/cuda_check.h"
#include "ops/loss/preference_pair.h"
#include "ops/loss/rows.cuh"

namespace bloomery {
namespace {

// One block per sequence.
__global__ void answer_sums(const float* losses, const float* mask, std::int64_t length,
                            float* sums) {
  __shared__ double scratch[kRowThreads / kWarpSize];
  const std::int64_t sequence = blockIdx.x, sequences = gridDim.x;
  double loss = 0, tokens = 0;
  for (std::int64_t i = threadIdx.x; i < length; i += kRowThreads) {
    const std::int64_t t = sequence * length + i;
    const float weight = mask_at(mask, t);
    loss += weight != 0.0f ? double{weight} * losses[t] : 0.0;
    tokens += weight;
  }
  loss = block_sum(loss, scratch);
  tokens = block_sum(tokens, scratch);
  if (threadIdx.x == 0) {
    sums[sequence] = static_cast<float>(-loss);
    sums[sequences + sequence] = static_cast<float>(tokens);
  }
}

// The pairs of a micro-batch are few: one thread goes through them, always in the same order.
__global__ void preference_pairs(const float* sums, const float* reference, std::int64_t sequences,
                                 PreferenceOptions options, double share, float* all_figures,
                                 float* weights) {
  double figures[kNumPreferenceFigures] = {};
  for (std::int64_t pair = 0; pair < sequences / 2; ++pair) {
    add_pair(options, sums, reference, sequences, pair, figures, weights);
  }
  for (int i = 0; i < kNumPreferenceFigures; ++i) {
    all_figures[i] = static_cast<float>(figures[i] * share * 2 / static_cast<double>(sequences));
  }
}

__global__ void answer_weights(const float* mask, const float* weights, std::int64_t length,
                               std::int64_t count, float* tokens) {
  const std::int64_t t = std::int64_t{blockIdx.x} * kTokenThreads + threadIdx.x;
  if (t < count) {
    tokens[t] = mask_at(mask, t) * weights[t / length];
  }
}

}  // namespace

void run(OnCuda, Stream& stream, const AnswerSums& k) {
  const std::int64_t sequences = k.sums.columns();
  if (sequences == 0) {
    return;
  }
  answer_sums<<<static_cast<unsigned>(sequences), kRowThreads, 0, cuda_stream(stream)>>>(
      k.losses.as<float>(), k.mask.as<float>(), k.losses.numel() / sequences, k.sums.as<float>());
  check_launch("answer sums");
}

void run(OnCuda, Stream& stream, const PreferencePairs& k) {
  preference_pairs<<<1, 1, 0, cuda_stream(stream)>>>(k.sums.as<float>(), k.reference.as<float>(),
                                                     k.weights.numel(), k.options, k.share,
                                                     k.figures.as<float>(), k.weights.as<float>());
  check_launch("preference pairs");
}

void run(OnCuda, Stream& stream, const AnswerWeights& k) {
  const std::int64_t count = k.tokens.numel();
  if (count == 0) {
    return;
  }
  const auto blocks = static_cast<unsigned>((count + kTokenThreads - 1) / kTokenThreads);
  answer_weights<<<blocks, kTokenThreads, 0, cuda_stream(stream)>>>(
      k.mask.as<float>(), k.weights.as<float>(), count / k.weights.numel(), count,
      k.tokens.as<float>());
  check_launch("answer weights");
}

}  // namespace bloomery
