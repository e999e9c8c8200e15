#include "device/cuda_check.h"
#include "ops/loss/distill.h"
#include "ops/loss/rows.cuh"

namespace bloomery {
namespace {

// The three sums of DistillStatistics and the maxima that they are relative to, of the elements
// that a thread has seen.
template <class T>
struct Seen {
  float max_s = -INFINITY, max_t = -INFINITY;
  float sum_s = 0, sum_t = 0, difference = 0;

  template <int kPacks, int kCount>
  __device__ __forceinline__ void add(const Pack<T, kCount> (&s)[kPacks],
                                      const Pack<T, kCount> (&t)[kPacks], float inverse) {
    float larger_s = max_s, larger_t = max_t;
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
#pragma unroll
      for (int j = 0; j < kCount; ++j) {
        larger_s = fmaxf(larger_s, to_float(s[p][j]));
        larger_t = fmaxf(larger_t, to_float(t[p][j]));
      }
    }
    refer_to(larger_s, larger_t, inverse);
#pragma unroll
    for (int p = 0; p < kPacks; ++p) {
#pragma unroll
      for (int j = 0; j < kCount; ++j) {
        const float of_s = to_float(s[p][j]), of_t = to_float(t[p][j]);
        const float weight = exponential<T>((of_t - finite(max_t)) * inverse);
        sum_s += exponential<T>((of_s - finite(max_s)) * inverse);
        sum_t += weight;
        // A token that is impossible has no part.
        difference += weight > 0.0f ? weight * ((of_t - of_s) * inverse) : 0.0f;
      }
    }
  }

  __device__ __forceinline__ void refer_to(float larger_s, float larger_t, float inverse) {
    const float factor_s = max_s == larger_s ? 1.0f : exponential<T>((max_s - larger_s) * inverse);
    const float factor_t = max_t == larger_t ? 1.0f : exponential<T>((max_t - larger_t) * inverse);
    sum_s *= factor_s;
    sum_t *= factor_t;
    difference *= factor_t;
    max_s = larger_s;
    max_t = larger_t;
  }

  // What exponents are relative to while nothing but -inf was seen.
  static __device__ __forceinline__ float finite(float max) {
    return max == -INFINITY ? 0.0f : max;
  }
};

template <int kCount, class T>
__global__ void __launch_bounds__(kRowThreads)
    row_statistics(const T* student, const T* teacher, std::int64_t num_valid, std::int64_t width,
                   float inverse, float* local_max, float* max, float* sums) {
  __shared__ float scratch[kRowThreads / kWarpSize];
  const std::int64_t row = blockIdx.x, rows = gridDim.x;
  const T* s = student + row * width;
  const T* t = teacher + row * width;
  Seen<T> seen;
  for_packs<kCount>(num_valid, [&](auto packs, auto count, std::int64_t start) {
    Pack<T, count()> of_s[packs()], of_t[packs()];
    load_packs(s + start, of_s);
    load_packs(t + start, of_t);
    seen.add(of_s, of_t, inverse);
  });
  const float max_s = block_max(seen.max_s, scratch), max_t = block_max(seen.max_t, scratch);
  seen.refer_to(max_s, max_t, inverse);
  const float sum_s = block_sum(seen.sum_s, scratch), sum_t = block_sum(seen.sum_t, scratch);
  const float difference = block_sum(seen.difference, scratch);
  if (threadIdx.x == 0) {
    local_max[row] = max[row] = max_s;
    local_max[rows + row] = max[rows + row] = max_t;
    sums[row] = sum_s;
    sums[rows + row] = sum_t;
    sums[2 * rows + row] = difference;
  }
}

// One thread per maximum: the teacher's has two sums.
__global__ void rescale(const float* local_max, const float* max, float inverse, float* sums,
                        std::int64_t rows) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= 2 * rows || local_max[i] == max[i]) {
    return;
  }
  const float factor = expf((local_max[i] - max[i]) * inverse);
  sums[i] *= factor;
  if (i >= rows) {
    sums[rows + i] *= factor;
  }
}

__global__ void divergences(const float* max, const float* sums, float inverse, float scale,
                            float* losses, std::int64_t rows) {
  const std::int64_t t = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (t < rows) {
    const float distance =
        (max[t] - max[rows + t]) * inverse + logf(sums[t]) - logf(sums[rows + t]);
    losses[t] = scale * (sums[2 * rows + t] / sums[rows + t] + distance);
  }
}

struct GradientArguments {
  std::int64_t num_valid, width;
  float inverse_temperature, scale;
  const float *max, *sums, *mask, *inverse, *grad_scale;
};

template <int kCount, class T>
__global__ void __launch_bounds__(kRowThreads)
    row_gradient(const T* student, T* teacher, GradientArguments k) {
  const std::int64_t row = blockIdx.x, rows = gridDim.x;
  const T* s = student + row * k.width;
  T* t = teacher + row * k.width;
  const float inverse = k.inverse_temperature;
  const float weight = mask_at(k.mask, row) * *k.inverse *
                       (k.grad_scale != nullptr ? *k.grad_scale : 1.0f) * k.scale * inverse;
  const bool counts = weight != 0.0f;
  const float max_s = k.max[row], max_t = k.max[rows + row];
  const float factor_s = counts ? weight / k.sums[row] : 0.0f;
  const float factor_t = counts ? weight / k.sums[rows + row] : 0.0f;
  for_packs<kCount>(k.num_valid, [&](auto packs, auto count, std::int64_t start) {
    Pack<T, count()> of_s[packs()], of_t[packs()];
    load_packs(s + start, of_s);
    load_packs(t + start, of_t);
#pragma unroll
    for (int p = 0; p < packs(); ++p) {
#pragma unroll
      for (int j = 0; j < count(); ++j) {
        const float q = exponential<T>((to_float(of_s[p][j]) - max_s) * inverse) * factor_s;
        const float of_teacher =
            exponential<T>((to_float(of_t[p][j]) - max_t) * inverse) * factor_t;
        of_t[p][j] = from_float<T>(counts ? q - of_teacher : 0.0f);
      }
      store_pack(t + start + p * kRowThreads * count(), of_t[p]);
    }
  });
  for (std::int64_t i = k.num_valid + threadIdx.x; i < k.width; i += kRowThreads) {
    t[i] = from_float<T>(0.0f);
  }
}

bool packed(const ConstView& student, const ConstView& teacher) {
  return packed_rows(student.data, student.columns(), student.dtype) &&
         packed_rows(teacher.data, teacher.columns(), teacher.dtype);
}

}  // namespace

void run(OnCuda, Stream& stream, const DistillStatistics& k) {
  const std::int64_t rows = k.student.rows();
  if (rows == 0) {
    return;
  }
  dispatch_device(k.student.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto kernel =
        packed(k.student, k.teacher) ? row_statistics<kPackSize<T>, T> : row_statistics<1, T>;
    kernel<<<static_cast<unsigned>(rows), kRowThreads, 0, cuda_stream(stream)>>>(
        k.student.as<T>(), k.teacher.as<T>(), k.num_valid, k.student.columns(),
        static_cast<float>(k.inverse_temperature), k.local_max.as<float>(), k.max.as<float>(),
        k.sums.as<float>());
  });
  check_launch("distillation statistics");
}

void run(OnCuda, Stream& stream, const DistillRescale& k) {
  const std::int64_t rows = k.max.numel() / 2;
  rescale<<<num_blocks(2 * rows, kTokenThreads), kTokenThreads, 0, cuda_stream(stream)>>>(
      k.local_max.as<float>(), k.max.as<float>(), static_cast<float>(k.inverse_temperature),
      k.sums.as<float>(), rows);
  check_launch("distillation rescale");
}

void run(OnCuda, Stream& stream, const DistillTokens& k) {
  const std::int64_t rows = k.losses.numel();
  divergences<<<num_blocks(rows, kTokenThreads), kTokenThreads, 0, cuda_stream(stream)>>>(
      k.max.as<float>(), k.sums.as<float>(), static_cast<float>(k.inverse_temperature),
      static_cast<float>(k.scale), k.losses.as<float>(), rows);
  check_launch("distillation divergences");
}

void run(OnCuda, Stream& stream, const DistillGradient& k) {
  const std::int64_t rows = k.student.rows();
  if (rows == 0) {
    return;
  }
  const GradientArguments arguments{
      .num_valid = k.num_valid,
      .width = k.student.columns(),
      .inverse_temperature = static_cast<float>(k.inverse_temperature),
      .scale = static_cast<float>(k.scale),
      .max = k.max.as<float>(),
      .sums = k.sums.as<float>(),
      .mask = k.mask.as<float>(),
      .inverse = k.inverse.as<float>(),
      .grad_scale = k.grad_scale.as<float>()};
  dispatch_device(k.student.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto kernel =
        packed(k.student, k.teacher) ? row_gradient<kPackSize<T>, T> : row_gradient<1, T>;
    kernel<<<static_cast<unsigned>(rows), kRowThreads, 0, cuda_stream(stream)>>>(
        k.student.as<T>(), k.teacher.as<T>(), arguments);
  });
  check_launch("distillation gradient");
}

}  // namespace bloomery
