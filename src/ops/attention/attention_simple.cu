// Attention in plain fp32 arithmetic, for fp32 and for heads that the tensor-core kernels do not
// take. Forward: online softmax. Backward: one pass that owns queries (dQ) and one that owns keys
// (dK, dV), each computing the scores again; formulas in flash_backward_sm80.cuh.
#include "device/cuda_check.h"
#include "ops/attention/attention_backends.h"
#include "ops/attention/simple_common.cuh"
#include "ops/common/dispatch_cuda.cuh"

namespace bloomery::attention_cuda {
namespace {

struct Place {
  int sequence, head, first;  // `head` of `num_heads`; first own row
};
__device__ Place block_place(std::int64_t length, std::int64_t num_heads, int owned) {
  const unsigned tiles = static_cast<unsigned>((length + owned - 1) / owned);
  const unsigned heads = static_cast<unsigned>(num_heads);
  const unsigned rest = blockIdx.x / tiles;
  return {static_cast<int>(rest / heads), static_cast<int>(rest % heads),
          static_cast<int>(blockIdx.x % tiles) * owned};
}

__device__ int heads_per_group(const AttentionProblem& problem) {
  return static_cast<int>(problem.num_heads / problem.num_groups);
}

template <class T, int kRows>
__global__ void __launch_bounds__(kSimpleThreads)
    simple_forward(const __grid_constant__ AttentionForward k) {
  extern __shared__ float memory[];
  using Shared = SimpleShared<kRows>;
  const AttentionProblem& problem = k.problem;
  const Shared shared(memory, static_cast<int>(problem.head_dim));
  const auto [sequence, head, first] =
      block_place(problem.query_length, problem.num_heads, Shared::kOwned);
  const int group = head / heads_per_group(problem);
  const auto keys = key_rows<const T>(k.k, problem, sequence, group);
  const auto values = key_rows<const T>(k.v, problem, sequence, group);
  shared.load_owned(0, query_rows<const T>(k.q, problem, sequence, head), first);
  shared.clear_owned(1);

  float maximum[kRows], sum[kRows];  // sum: of this lane's keys
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    maximum[r] = -INFINITY;
    sum[r] = 0;
  }
  const int first_row = first + Shared::warp() * kRows;
  const KeyRange any = candidates(problem, sequence, first, Shared::kOwned);
  for (int key = any.begin; key < any.end; key += kWarpSize) {
    float p[kRows], correction[kRows];
    shared.multiply(p, 0, keys, key);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int query = first_row + r, lane_key = key + Shared::lane();
      const bool seen = visible(problem, sequence, query, lane_key);
      if (seen && problem.bias != nullptr) {
        p[r] += HeadBias(problem, head).at(distance_between(problem, sequence, query, lane_key));
      }
      const float score = seen ? p[r] * problem.scale : -INFINITY;
      const float larger = fmaxf(maximum[r], warp_max(score));
      const float shift = larger == -INFINITY ? 0.0f : larger;
      correction[r] = expf(maximum[r] - shift);
      maximum[r] = larger;
      p[r] = expf(score - shift);
      sum[r] = sum[r] * correction[r] + p[r];
      p[r] *= seen ? dropout_factor(problem, sequence, head, query, lane_key) : 0.0f;
    }
    shared.accumulate(1, correction, p, values, key);
  }
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const float total = warp_sum(sum[r]);
    const float factor = total == 0 ? 0.0f : 1 / total;
    for (int c = Shared::lane(); c < shared.head_dim; c += kWarpSize) {
      shared.warp_rows(1)[r * shared.head_dim + c] *= factor;
    }
    if (k.lse.data != nullptr && Shared::lane() == 0 && first_row + r < problem.query_length) {
      const std::int64_t row = sequence * problem.num_heads + head;
      static_cast<float*>(k.lse.data)[row * problem.query_length + first_row + r] =
          total == 0 ? -INFINITY : maximum[r] + logf(total);
    }
  }
  __syncthreads();
  shared.store_owned(1, output_rows<T>(k.out.data, problem, sequence, head), first, 1.0f);
}

struct SimpleBackward {
  AttentionBackward k;
  const float* delta;   // [sequences, heads, query_length]
  float* bias_partial;  // [sequences, query tiles, heads, distances]; null: not wanted
};

// One element of the backward: P' = dropout factor * P, and dS.
struct Element {
  float dropped_probability, grad_score;
};
__device__ Element backward_element(const SimpleBackward& args, int sequence, int head, int query,
                                    int key, float dot, float grad_dot) {
  const AttentionProblem& problem = args.k.problem;
  if (!visible(problem, sequence, query, key)) {
    return {0, 0};
  }
  const std::int64_t row = (sequence * problem.num_heads + head) * problem.query_length + query;
  if (problem.bias != nullptr) {
    dot += HeadBias(problem, head).at(distance_between(problem, sequence, query, key));
  }
  const float p = expf(dot * problem.scale - static_cast<const float*>(args.k.lse.data)[row]);
  const float factor = dropout_factor(problem, sequence, head, query, key);
  return {p * factor, p * (grad_dot * factor - args.delta[row])};
}

__device__ void add_bias_grad(const AttentionProblem& problem, const WarpBiasGrad& to, int sequence,
                              int query, int key, float grad) {
  const bool seen = visible(problem, sequence, query, key);
  const int distance = seen ? distance_between(problem, sequence, query, key) : 0;
  to.add(seen, static_cast<int>(distance_index(distance, problem.bias_reach)), grad);
}

// Adds up the warps of the block, after a barrier.
__device__ void store_bias_grad(const SimpleBackward& args, const float* warps, int sequence,
                                int head, int tile, int owned) {
  const AttentionProblem& problem = args.k.problem;
  const std::int64_t tiles = (problem.query_length + owned - 1) / owned;
  const int distances = static_cast<int>(2 * problem.bias_reach + 1);
  float* const to =
      args.bias_partial + ((sequence * tiles + tile) * problem.num_heads + head) * distances;
  for (int i = static_cast<int>(threadIdx.x); i < distances; i += kSimpleThreads) {
    float sum = 0;
    for (int warp = 0; warp < kSimpleWarps; ++warp) {
      sum += warps[warp * distances + i];
    }
    to[i] = sum;
  }
}

template <class T, int kRows>
__global__ void __launch_bounds__(kSimpleThreads)
    simple_query_grad(const __grid_constant__ SimpleBackward args) {
  extern __shared__ float memory[];
  using Shared = SimpleShared<kRows>;
  const AttentionProblem& problem = args.k.problem;
  const Shared shared(memory, static_cast<int>(problem.head_dim));
  const auto [sequence, head, first] =
      block_place(problem.query_length, problem.num_heads, Shared::kOwned);
  const int group = head / heads_per_group(problem);
  const auto keys = key_rows<const T>(args.k.k, problem, sequence, group);
  const auto values = key_rows<const T>(args.k.v, problem, sequence, group);
  shared.load_owned(0, query_rows<const T>(args.k.q, problem, sequence, head), first);
  shared.load_owned(1, output_rows<const T>(args.k.grad_out.data, problem, sequence, head), first);
  shared.clear_owned(2);

  float ones[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    ones[r] = 1;
  }
  const WarpBiasGrad bias_grad(shared.array(3), problem, args.bias_partial != nullptr);
  const KeyRange any = candidates(problem, sequence, first, Shared::kOwned);
  for (int key = any.begin; key < any.end; key += kWarpSize) {
    float dots[kRows], grads[kRows];
    shared.multiply(dots, 0, keys, key);
    shared.multiply(grads, 1, values, key);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const int query = first + Shared::warp() * kRows + r;
      grads[r] =
          backward_element(args, sequence, head, query, key + Shared::lane(), dots[r], grads[r])
              .grad_score;
      if (args.bias_partial != nullptr) {
        add_bias_grad(problem, bias_grad, sequence, query, key + Shared::lane(), grads[r]);
      }
    }
    shared.accumulate(2, ones, grads, keys, key);
  }
  __syncthreads();
  shared.store_owned(2, query_rows<T>(args.k.grad_q, problem, sequence, head), first,
                     problem.scale);
  if (args.bias_partial != nullptr) {
    store_bias_grad(args, shared.array(3), sequence, head, first / Shared::kOwned, Shared::kOwned);
  }
}

template <class T, int kRows>
__global__ void __launch_bounds__(kSimpleThreads)
    simple_key_grad(const __grid_constant__ SimpleBackward args) {
  extern __shared__ float memory[];
  using Shared = SimpleShared<kRows>;
  const AttentionProblem& problem = args.k.problem;
  const Shared shared(memory, static_cast<int>(problem.head_dim));
  const auto [sequence, group, first] =
      block_place(problem.key_length, problem.num_groups, Shared::kOwned);
  shared.load_owned(0, key_rows<const T>(args.k.k, problem, sequence, group), first);
  shared.load_owned(1, key_rows<const T>(args.k.v, problem, sequence, group), first);
  shared.clear_owned(2);
  shared.clear_owned(3);

  float ones[kRows];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    ones[r] = 1;
  }
  const int per_group = heads_per_group(problem);
  for (int head = group * per_group; head < (group + 1) * per_group; ++head) {
    const auto queries = query_rows<const T>(args.k.q, problem, sequence, head);
    const auto grads_out = output_rows<const T>(args.k.grad_out.data, problem, sequence, head);
    for (int query = 0; query < problem.query_length; query += kWarpSize) {
      if (!candidates(problem, sequence, query, kWarpSize).touches(first, first + Shared::kOwned)) {
        continue;
      }
      float dots[kRows], grads[kRows];
      shared.multiply(dots, 0, queries, query);
      shared.multiply(grads, 1, grads_out, query);
#pragma unroll
      for (int r = 0; r < kRows; ++r) {
        const int key = first + Shared::warp() * kRows + r;
        const Element element =
            backward_element(args, sequence, head, query + Shared::lane(), key, dots[r], grads[r]);
        dots[r] = element.dropped_probability;
        grads[r] = element.grad_score;
      }
      shared.accumulate(2, ones, grads, queries, query);
      shared.accumulate(3, ones, dots, grads_out, query);
    }
  }
  __syncthreads();
  shared.store_owned(2, key_rows<T>(args.k.grad_k, problem, sequence, group), first, problem.scale);
  shared.store_owned(3, key_rows<T>(args.k.grad_v, problem, sequence, group), first, 1.0f);
}

template <int kRows, class Args>
void launch_simple(Stream& stream, void (*kernel)(Args), const Args& args,
                   const AttentionProblem& problem, std::int64_t length, std::int64_t num_heads,
                   int num_owned, const char* name, std::int64_t more_floats = 0) {
  using Shared = SimpleShared<kRows>;
  const std::int64_t blocks =
      (length + Shared::kOwned - 1) / Shared::kOwned * num_heads * problem.num_sequences;
  if (blocks == 0) {
    return;
  }
  check(blocks < (std::int64_t{1} << 31), "attention: ", blocks,
        " blocks are too many for one launch; use fewer sequences per micro-batch");
  const std::size_t bytes = Shared::bytes(problem.head_dim, num_owned) +
                            static_cast<std::size_t>(more_floats) * sizeof(float);
  check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                  static_cast<int>(bytes)),
             "cudaFuncSetAttribute");
  kernel<<<static_cast<unsigned>(blocks), kSimpleThreads, bytes, cuda_stream(stream)>>>(args);
  check_launch(name);
}

// Calls body.template operator()<T, kRows>(): fewer own rows where they are long.
template <class Body>
void dispatch_simple(const AttentionProblem& problem, const Body& body) {
  constexpr std::int64_t kMaxHeadDim = 1024;
  check(problem.head_dim <= kMaxHeadDim, "attention: head_dim ", problem.head_dim,
        " is more than the ", kMaxHeadDim, " that CUDA kernels take");
  dispatch_device(problem.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if (problem.head_dim <= 128) {
      body.template operator()<T, 4>();
    } else {
      body.template operator()<T, 1>();
    }
  });
}

}  // namespace

void simple_run(Stream& stream, const AttentionForward& k) {
  const AttentionProblem& problem = k.problem;
  dispatch_simple(problem, [&]<class T, int kRows>() {
    launch_simple<kRows>(stream, simple_forward<T, kRows>, k, problem, problem.query_length,
                         problem.num_heads, 2, "simple_forward");
  });
}

void simple_run(Stream& stream, const AttentionBackward& k) {
  const AttentionProblem& problem = k.problem;
  const Tensor delta = Tensor::empty(
      stream, DType::fp32, {problem.num_sequences, problem.num_heads, problem.query_length});
  attention_delta(stream, k, 1, delta);
  dispatch_simple(problem, [&]<class T, int kRows>() {
    constexpr std::int64_t kOwned = SimpleShared<kRows>::kOwned;
    const BiasPartials bias(stream, k,
                            problem.num_sequences * ((problem.query_length + kOwned - 1) / kOwned),
                            problem.bias_reach);
    const SimpleBackward args{
        .k = k, .delta = static_cast<const float*>(delta.data()), .bias_partial = bias.data()};
    launch_simple<kRows>(stream, simple_query_grad<T, kRows>, args, problem, problem.query_length,
                         problem.num_heads, 3, "simple_query_grad",
                         bias.data() != nullptr ? kSimpleWarps * (2 * problem.bias_reach + 1) : 0);
    launch_simple<kRows>(stream, simple_key_grad<T, kRows>, args, problem, problem.key_length,
                         problem.num_groups, 4, "simple_key_grad");
    bias.add_up(problem.scale);
  });
}

}  // namespace bloomery::attention_cuda
