#include "device/cuda_check.h"
#include "ops/loss/loss_steps.h"
#include "ops/loss/rows.cuh"

namespace bloomery {
namespace {

constexpr int kReduceThreads = 1024;  // one block for a sum over all tokens

// Maximum, and sum of exponentials relative to it, of the elements that a thread has seen.
template <class T>
struct Online {
  float max = -INFINITY, sum = 0;

  template <int kPacks, int kCount>
  __device__ __forceinline__ void add(const Pack<T, kCount> (&packs)[kPacks]) {
    float larger = max;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
#pragma unroll
      for (int j = 0; j < kCount; ++j) {
        larger = fmaxf(larger, to_float(packs[p][j]));
      }
    }
    float added = 0;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
#pragma unroll
      for (int j = 0; j < kCount; ++j) {
        added += exponential<T>(to_float(packs[p][j]) - larger);
      }
    }
    sum = sum * exponential<T>(max - larger) + added;
    max = larger;
  }
};

// Maximum and sum of the whole row, from what its threads have seen.
template <class T>
__device__ __forceinline__ Online<T> combined(const Online<T>& mine, float* scratch) {
  const float largest = block_max(mine.max, scratch);
  const float part = mine.max == largest ? mine.sum : mine.sum * exponential<T>(mine.max - largest);
  return {largest, block_sum(part, scratch)};
}

template <int kCount, class T>
__global__ void __launch_bounds__(kRowThreads)
    row_statistics(const T* logits, const std::int32_t* labels, LossColumns columns,
                   std::int64_t width, float* local_max, float* max, float* sum, float* target) {
  __shared__ float scratch[kRowThreads / kWarpSize];
  const std::int64_t row = blockIdx.x;
  const T* x = logits + row * width;
  Online<T> online;
  for_packs<kCount>(columns.num_valid, [&](auto packs, auto count, std::int64_t start) {
    Pack<T, count()> ahead[packs()];
    load_packs(x + start, ahead);
    online.add(ahead);
  });
  const Online<T> whole = combined(online, scratch);
  if (threadIdx.x == 0) {
    const std::int64_t label = columns.of(labels[row]);
    local_max[row] = whole.max;
    max[row] = whole.max;
    sum[row] = whole.sum;
    target[row] = label >= 0 ? to_float(x[label]) : 0.0f;
  }
}

struct GradientArguments {
  const std::int32_t* labels;
  LossColumns columns;
  std::int64_t width;
  const float *max, *sum, *mask, *inverse, *grad_scale;
};

// x [width] = the gradient of a row whose logits are at `from`, in the places where this thread
// read them: x itself or a copy.
template <int kCount, class T>
__device__ __forceinline__ void write_gradient(const GradientArguments& k, std::int64_t row,
                                               const Online<T>& statistics, const T* from, T* x) {
  const float weight =
      mask_at(k.mask, row) * *k.inverse * (k.grad_scale != nullptr ? *k.grad_scale : 1.0f);
  const bool counts = weight != 0.0f;
  const float max = statistics.max, factor = counts ? weight / statistics.sum : 0.0f;
  const std::int64_t label = k.columns.of(k.labels[row]);
  for_packs<kCount>(k.columns.num_valid, [&](auto packs, auto count, std::int64_t start) {
    Pack<T, count()> values[packs()];
    load_packs(from + start, values);
#pragma unroll
    for (int p = 0; p < packs(); ++p) {
      const std::int64_t first = start + p * kRowThreads * count();
#pragma unroll
      for (int j = 0; j < count(); ++j) {
        const float softmax = exponential<T>(to_float(values[p][j]) - max) * factor;
        const float gradient = first + j == label ? softmax - weight : softmax;
        values[p][j] = from_float<T>(counts ? gradient : 0.0f);
      }
      store_pack(x + first, values[p]);
    }
  });
  for (std::int64_t i = k.columns.num_valid + threadIdx.x; i < k.width; i += kRowThreads) {
    x[i] = from_float<T>(0.0f);
  }
}

template <int kCount, class T>
__global__ void __launch_bounds__(kRowThreads) row_gradient(T* logits, GradientArguments k) {
  const std::int64_t row = blockIdx.x;
  T* x = logits + row * k.width;
  write_gradient<kCount>(k, row, Online<T>{k.max[row], k.sum[row]}, x, x);
}

__device__ __forceinline__ float token_loss(float max, float sum, float target, float mask,
                                            std::int64_t label, std::int64_t vocabulary) {
  if (label < 0 || label >= vocabulary) {
    return mask == 0.0f ? 0.0f : NAN;
  }
  return logf(sum) + (max - target);
}

// The row is read once, into shared memory, where each thread finds again what it read itself.
template <int kCount, class T>
__global__ void __launch_bounds__(kRowThreads)
    row_loss_and_gradient(T* logits, GradientArguments k, std::int64_t vocabulary, float* losses) {
  extern __shared__ uint4 row_memory[];
  __shared__ float scratch[kRowThreads / kWarpSize];
  T* const kept = reinterpret_cast<T*>(row_memory);
  const std::int64_t row = blockIdx.x;
  T* const x = logits + row * k.width;
  const std::int64_t label = k.columns.of(k.labels[row]);
  const float target = threadIdx.x == 0 && label >= 0 ? to_float(x[label]) : 0.0f;
  Online<T> online;
  for_packs<kCount>(k.columns.num_valid, [&](auto packs, auto count, std::int64_t start) {
    Pack<T, count()> ahead[packs()];
    load_packs(x + start, ahead);
#pragma unroll
    for (int p = 0; p < packs(); ++p) {
      store_pack(kept + start + p * kRowThreads * count(), ahead[p]);
    }
    online.add(ahead);
  });
  const Online<T> whole = combined(online, scratch);
  write_gradient<kCount>(k, row, whole, kept, x);
  if (threadIdx.x == 0) {
    losses[row] =
        token_loss(whole.max, whole.sum, target, mask_at(k.mask, row), k.labels[row], vocabulary);
  }
}

__global__ void rescale(const float* local_max, const float* max, float* sum, std::int64_t count) {
  const std::int64_t t = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (t < count && local_max[t] != max[t]) {
    sum[t] *= expf(local_max[t] - max[t]);
  }
}

struct TokenArguments {
  const float *max, *sum, *target, *mask;
  const std::int32_t* labels;
  std::int64_t vocabulary;
};

__global__ void token_losses(TokenArguments k, float* losses, std::int64_t count) {
  const std::int64_t t = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (t >= count) {
    return;
  }
  losses[t] =
      token_loss(k.max[t], k.sum[t], k.target[t], mask_at(k.mask, t), k.labels[t], k.vocabulary);
}

__global__ void mask_sum(const float* mask, std::int64_t count, float* inverse, float* whole) {
  __shared__ double scratch[kReduceThreads / kWarpSize];
  double sum = 0;
  for (std::int64_t t = threadIdx.x; t < count; t += kReduceThreads) {
    sum += mask_at(mask, t);
  }
  sum = block_sum(sum, scratch);
  if (threadIdx.x == 0 && inverse != nullptr) {
    *inverse = sum > 0 ? static_cast<float>(1 / sum) : 0.0f;
  }
  if (threadIdx.x == 0 && whole != nullptr) {
    *whole = static_cast<float>(sum);
  }
}

__global__ void mean_loss(const float* losses, const float* mask, std::int64_t count,
                          const float* inverse, float* loss) {
  __shared__ double scratch[kReduceThreads / kWarpSize];
  double sum = 0;
  for (std::int64_t t = threadIdx.x; t < count; t += kReduceThreads) {
    const float weight = mask_at(mask, t);
    sum += weight != 0.0f ? double{weight} * losses[t] : 0.0;
  }
  sum = block_sum(sum, scratch);
  if (threadIdx.x == 0) {
    *loss = static_cast<float>(sum * *inverse);
  }
}

template <class T>
__global__ void mask_columns(T* logits, std::int64_t width, std::int64_t num_valid) {
  T* x = logits + blockIdx.x * width;
  for (std::int64_t i = num_valid + threadIdx.x; i < width; i += blockDim.x) {
    x[i] = from_float<T>(-INFINITY);
  }
}

}  // namespace

void run(OnCuda, Stream& stream, const LossMaskSum& k) {
  mask_sum<<<1, kReduceThreads, 0, cuda_stream(stream)>>>(k.mask.as<float>(), k.num_tokens,
                                                          k.inverse.as<float>(), k.sum.as<float>());
  check_launch("loss mask sum");
}

void run(OnCuda, Stream& stream, const LossStatistics& k) {
  const std::int64_t rows = k.logits.rows(), width = k.logits.columns();
  if (rows == 0) {
    return;
  }
  dispatch_device(k.logits.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const bool packed = packed_rows(k.logits.data, width, k.logits.dtype);
    const auto kernel = packed ? row_statistics<kPackSize<T>, T> : row_statistics<1, T>;
    kernel<<<static_cast<unsigned>(rows), kRowThreads, 0, cuda_stream(stream)>>>(
        k.logits.as<T>(), k.labels.as<std::int32_t>(), k.columns, width, k.local_max.as<float>(),
        k.max.as<float>(), k.sum.as<float>(), k.target.as<float>());
  });
  check_launch("loss statistics");
}

void run(OnCuda, Stream& stream, const LossRescale& k) {
  const std::int64_t count = k.sum.numel();
  rescale<<<num_blocks(count, kTokenThreads), kTokenThreads, 0, cuda_stream(stream)>>>(
      k.local_max.as<float>(), k.max.as<float>(), k.sum.as<float>(), count);
  check_launch("loss rescale");
}

void run(OnCuda, Stream& stream, const LossTokens& k) {
  const std::int64_t count = k.losses.numel();
  const TokenArguments arguments{k.max.as<float>(),           k.sum.as<float>(),
                                 k.target.as<float>(),        k.mask.as<float>(),
                                 k.labels.as<std::int32_t>(), k.vocabulary};
  token_losses<<<num_blocks(count, kTokenThreads), kTokenThreads, 0, cuda_stream(stream)>>>(
      arguments, k.losses.as<float>(), count);
  check_launch("token losses");
}

void run(OnCuda, Stream& stream, const LossGradient& k) {
  const std::int64_t rows = k.logits.rows(), width = k.logits.columns();
  if (rows == 0) {
    return;
  }
  const GradientArguments arguments{k.labels.as<std::int32_t>(),
                                    k.columns,
                                    width,
                                    k.max.as<float>(),
                                    k.sum.as<float>(),
                                    k.mask.as<float>(),
                                    k.inverse.as<float>(),
                                    k.grad_scale.as<float>()};
  dispatch_device(k.logits.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const bool packed = packed_rows(k.logits.data, width, k.logits.dtype);
    const auto kernel = packed ? row_gradient<kPackSize<T>, T> : row_gradient<1, T>;
    kernel<<<static_cast<unsigned>(rows), kRowThreads, 0, cuda_stream(stream)>>>(k.logits.as<T>(),
                                                                                 arguments);
  });
  check_launch("loss gradient");
}

void run(OnCuda on, Stream& stream, const LossAndGradient& k) {
  constexpr std::int64_t kMostBytes = 112 << 10;  // of a row: two blocks share a multiprocessor
  const std::int64_t rows = k.logits.rows(), width = k.logits.columns();
  const std::int64_t bytes = width * static_cast<std::int64_t>(size_of(k.logits.dtype));
  if (rows == 0) {
    return;
  }
  if (bytes > kMostBytes) {
    return loss_and_gradient_in_steps(on, stream, k);
  }
  const GradientArguments arguments{.labels = k.labels.as<std::int32_t>(),
                                    .columns = k.columns,
                                    .width = width,
                                    .mask = k.mask.as<float>(),
                                    .inverse = k.inverse.as<float>(),
                                    .grad_scale = k.grad_scale.as<float>()};
  dispatch_device(k.logits.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const bool packed = packed_rows(k.logits.data, width, k.logits.dtype);
    const auto kernel =
        packed ? row_loss_and_gradient<kPackSize<T>, T> : row_loss_and_gradient<1, T>;
    check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                    static_cast<int>(kMostBytes)),
               "cudaFuncSetAttribute");
    kernel<<<static_cast<unsigned>(rows), kRowThreads, static_cast<std::size_t>(bytes),
             cuda_stream(stream)>>>(k.logits.as<T>(), arguments, k.vocabulary,
                                    k.losses.as<float>());
  });
  check_launch("loss and gradient");
}

void run(OnCuda, Stream& stream, const LossMean& k) {
  mean_loss<<<1, kReduceThreads, 0, cuda_stream(stream)>>>(k.losses.as<float>(), k.mask.as<float>(),
                                                           k.losses.numel(), k.inverse.as<float>(),
                                                           k.loss.as<float>());
  check_launch("mean loss");
}

void run(OnCuda, Stream& stream, const MaskColumns& k) {
  const std::int64_t rows = k.logits.rows(), width = k.logits.columns();
  if (rows == 0 || k.num_valid >= width) {
    return;
  }
  dispatch_device(k.logits.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    mask_columns<<<static_cast<unsigned>(rows), 128, 0, cuda_stream(stream)>>>(k.logits.as<T>(),
                                                                               width, k.num_valid);
  });
  check_launch("mask columns");
}

}  // namespace bloomery
