#include "device/cuda_check.h"
#include "ops/common/dispatch_cuda.cuh"
#include "ops/moe/routing.h"
#include "ops/moe/routing_token.h"

namespace bloomery {
namespace {

constexpr int kThreads = static_cast<int>(kTokensPerPart);
constexpr int kDropThreads = 1024;

// A block is one part, a thread one token; sums are added up expert by expert.
__global__ void choose_experts(const float* logits, const float* draws, std::int32_t* experts_out,
                               float* scores, float* parts, std::int64_t tokens, int experts,
                               RouterRule rule) {
  __shared__ float scratch[kThreads / kWarpSize];
  const std::int64_t t = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  const bool valid = t < tokens;
  const float* const own = logits + (valid ? t : 0) * experts;
  const moe::Softmax<float> p(own, experts);
  std::int32_t chosen[kMostChoices];
  if (valid) {
    moe::choose(rule, own, draws != nullptr ? draws + t * experts : nullptr, experts, chosen);
    for (int j = 0; j < rule.topk; ++j) {
      experts_out[t * rule.topk + j] = chosen[j];
      scores[t * rule.topk + j] = p[chosen[j]];
    }
  }
  float* const sums = parts + std::int64_t{blockIdx.x} * (3 * experts + 1);
  const int counted = rule.balance == Balance::first_choices ? 1 : rule.topk;
  for (int e = 0; e < experts; ++e) {
    const float share = block_sum(valid ? p[e] : 0.0f, scratch);
    const float first =
        block_sum(valid && moe::contains(chosen, counted, e) ? 1.0f : 0.0f, scratch);
    const float all =
        block_sum(valid && moe::contains(chosen, rule.topk, e) ? 1.0f : 0.0f, scratch);
    if (threadIdx.x == 0) {
      sums[e] = share;
      sums[experts + e] = first;
      sums[2 * experts + e] = all;
    }
  }
  const float logsumexp = p.logsumexp();
  const float squares = block_sum(valid ? logsumexp * logsumexp : 0.0f, scratch);
  if (threadIdx.x == 0) {
    sums[3 * experts] = squares;
  }
}

// One block. A warp adds up one number at a time over all parts, in a fixed order.
__global__ void sum_routing(const float* parts, float* load, float* figures, int num_parts,
                            int experts, float tokens, float capacity, RouterRule rule) {
  extern __shared__ float sums[];  // 3 experts + 1
  const int count = 3 * experts + 1, lane = threadIdx.x % kWarpSize;
  for (int i = threadIdx.x / kWarpSize; i < count; i += blockDim.x / kWarpSize) {
    float sum = 0;
    for (int part = lane; part < num_parts; part += kWarpSize) {
      sum += parts[std::int64_t{part} * count + i];
    }
    sum = warp_sum(sum);
    if (lane == 0) {
      sums[i] = sum;
      if (i >= experts && i < 3 * experts) {
        load[i - experts] = sum;
      }
    }
  }
  __syncthreads();
  if (threadIdx.x != 0) {
    return;
  }
  float balance = 0, largest = 0, dropped = 0;
  for (int e = 0; e < experts; ++e) {
    const float all = sums[2 * experts + e];
    balance += sums[e] / tokens * sums[experts + e] / tokens;
    largest = fmaxf(largest, all);
    dropped += capacity > 0 ? fmaxf(0.0f, all - capacity) : 0.0f;
  }
  const float choices = tokens * static_cast<float>(rule.topk);
  const float counted =
      rule.balance == Balance::first_choices ? 1.0f : static_cast<float>(rule.topk);
  figures[kBalanceLoss] = static_cast<float>(experts) * balance / counted;
  figures[kZLoss] = sums[3 * experts] / tokens;
  figures[kLargestLoad] = largest * static_cast<float>(experts) / choices;
  figures[kDroppedShare] = dropped / choices;
}

struct DropArguments {
  std::int32_t* experts;
  const float *scores, *draws;
  std::int64_t tokens;
  int topk, num_experts;
  std::int64_t capacity;
  Priority priority;
  TokenOrder order;

  __device__ __forceinline__ std::uint64_t key(std::int64_t pair, int expert) const {
    const std::int64_t t = pair / topk;
    const float number = priority == Priority::random        ? draws[t * num_experts + expert]
                         : priority == Priority::probability ? scores[pair]
                                                             : 0.0f;
    return moe::priority_key(priority, number, static_cast<int>(pair % topk), order(t), tokens);
  }
};

// A block per expert finds, eight bits at a time, the key of the last pair that it serves; keys
// are all different.
__global__ void drop_over_capacity(DropArguments a) {
  __shared__ unsigned histogram[256];
  __shared__ std::uint64_t prefix_shared;
  __shared__ std::int64_t left_shared;
  const int expert = static_cast<int>(blockIdx.x);
  const std::int64_t pairs = a.tokens * a.topk;
  std::uint64_t prefix = 0;        // the bits of the key found so far
  std::int64_t left = a.capacity;  // which of the keys with this prefix, from the top, it is
  const int first_shift = a.priority == Priority::position ? 24 : 56;
  for (int shift = first_shift; shift >= 0; shift -= 8) {
    if (threadIdx.x < 256) {
      histogram[threadIdx.x] = 0;
    }
    __syncthreads();
    for (std::int64_t pair = threadIdx.x; pair < pairs; pair += blockDim.x) {
      if (a.experts[pair] == expert) {
        const std::uint64_t key = a.key(pair, expert);
        if (shift == first_shift || key >> (shift + 8) == prefix) {
          atomicAdd(&histogram[key >> shift & 255], 1u);
        }
      }
    }
    __syncthreads();
    if (threadIdx.x == 0) {
      std::int64_t above = 0;
      int digit = 255;
      while (digit > 0 && above + histogram[digit] < left) {
        above += histogram[digit--];
      }
      // Fewer than asked for, of all: nothing is dropped.
      left_shared = shift == first_shift && above + histogram[digit] < left ? 0 : left - above;
      prefix_shared = prefix << 8 | static_cast<std::uint64_t>(digit);
    }
    __syncthreads();
    prefix = prefix_shared;
    left = left_shared;
    if (left == 0) {
      return;
    }
  }
  for (std::int64_t pair = threadIdx.x; pair < pairs; pair += blockDim.x) {
    if (a.experts[pair] == expert && a.key(pair, expert) < prefix) {
      a.experts[pair] = -1;
    }
  }
}

__global__ void make_gates(const std::int32_t* experts, const float* scores, float* gates,
                           std::int64_t tokens, int topk, bool renormalise) {
  const std::int64_t t = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (t >= tokens) {
    return;
  }
  const float sum = renormalise ? moe::gate_sum(experts + t * topk, scores + t * topk, topk) : 1.0f;
  for (int j = 0; j < topk; ++j) {
    gates[t * topk + j] = experts[t * topk + j] >= 0 ? scores[t * topk + j] / sum : 0.0f;
  }
}

struct BackwardArguments {
  const float* logits;
  const std::int32_t* experts;
  const float *grad_gates, *load, *grad_scale;
  float* grad_logits;
  std::int64_t tokens;
  int num_experts;
  bool add;
  RouterRule rule;
  float balance, z;
};

__global__ void route_backward(BackwardArguments a) {
  const std::int64_t t = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (t >= a.tokens) {
    return;
  }
  const float scale = a.grad_scale != nullptr ? *a.grad_scale : 1.0f;
  float* const grad = a.grad_logits + t * a.num_experts;
  const bool add = a.add;
  moe::token_gradient(a.rule, a.logits + t * a.num_experts, a.num_experts,
                      a.experts + t * a.rule.topk,
                      a.grad_gates != nullptr ? a.grad_gates + t * a.rule.topk : nullptr,
                      moe::LossGradient<float>{a.load, scale * a.balance, scale * a.z},
                      [=](int e, float value) { grad[e] = add ? grad[e] + value : value; });
}

}  // namespace

void run(OnCuda, Stream& stream, const ChooseExperts& k) {
  if (k.logits.rows() == 0) {
    return;
  }
  choose_experts<<<static_cast<unsigned>(k.parts.rows()), kThreads, 0, cuda_stream(stream)>>>(
      k.logits.as<float>(), k.draws.as<float>(), k.experts.as<std::int32_t>(), k.scores.as<float>(),
      k.parts.as<float>(), k.logits.rows(), static_cast<int>(k.logits.columns()), k.rule);
  check_launch("choose_experts");
}

void run(OnCuda, Stream& stream, const SumRouting& k) {
  const int experts = static_cast<int>(k.load.columns());
  sum_routing<<<1, 1024, sizeof(float) * (3 * static_cast<std::size_t>(experts) + 1),
                cuda_stream(stream)>>>(k.parts.as<float>(), k.load.as<float>(),
                                       k.figures.as<float>(), static_cast<int>(k.parts.rows()),
                                       experts, static_cast<float>(k.tokens),
                                       static_cast<float>(k.capacity), k.rule);
  check_launch("sum_routing");
}

void run(OnCuda, Stream& stream, const DropOverCapacity& k) {
  if (k.experts.numel() == 0) {
    return;
  }
  drop_over_capacity<<<static_cast<unsigned>(k.num_experts), kDropThreads, 0,
                       cuda_stream(stream)>>>({.experts = k.experts.as<std::int32_t>(),
                                               .scores = k.scores.as<float>(),
                                               .draws = k.draws.as<float>(),
                                               .tokens = k.experts.rows(),
                                               .topk = static_cast<int>(k.experts.columns()),
                                               .num_experts = static_cast<int>(k.num_experts),
                                               .capacity = k.capacity,
                                               .priority = k.priority,
                                               .order = k.order});
  check_launch("drop_over_capacity");
}

void run(OnCuda, Stream& stream, const MakeGates& k) {
  const std::int64_t tokens = k.gates.rows();
  make_gates<<<num_blocks(tokens, kThreads), kThreads, 0, cuda_stream(stream)>>>(
      k.experts.as<std::int32_t>(), k.scores.as<float>(), k.gates.as<float>(), tokens,
      static_cast<int>(k.gates.columns()), k.renormalise);
  check_launch("make_gates");
}

void run(OnCuda, Stream& stream, const RouteBackward& k) {
  const std::int64_t tokens = k.logits.rows(), experts = k.logits.columns();
  const auto all = static_cast<float>(k.tokens);
  const int counted = k.rule.balance == Balance::first_choices ? 1 : k.rule.topk;
  const BackwardArguments arguments{.logits = k.logits.as<float>(),
                                    .experts = k.experts.as<std::int32_t>(),
                                    .grad_gates = k.grad_gates.as<float>(),
                                    .load = k.load.as<float>(),
                                    .grad_scale = k.grad_scale.as<float>(),
                                    .grad_logits = k.grad_logits.as<float>(),
                                    .tokens = tokens,
                                    .num_experts = static_cast<int>(experts),
                                    .add = k.add,
                                    .rule = k.rule,
                                    .balance = k.balance_coefficient * static_cast<float>(experts) /
                                               all / all / static_cast<float>(counted),
                                    .z = k.z_coefficient * 2 / all};
  route_backward<<<num_blocks(tokens, kThreads), kThreads, 0, cuda_stream(stream)>>>(arguments);
  check_launch("route_backward");
}

}  // namespace bloomery
