#include "device/cuda_check.h"
#include "ops/attention/attention_backends.h"
#include "ops/common/dispatch_cuda.cuh"

namespace bloomery::attention_cuda {
namespace {

constexpr int kThreads = 128;

// One thread per row: rows of neighbouring threads are neighbours in memory.
template <int kCount, class T>
__global__ void delta_rows(const T* out, const T* grad_out, float* delta, std::int64_t num_rows,
                           int num_heads, int query_length, int head_dim, float factor) {
  const std::int64_t row = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (row >= num_rows) {
    return;
  }
  float sum = 0;
  for (int c = 0; c < head_dim; c += kCount) {
    const auto a = load_pack<kCount>(out + row * head_dim + c);
    const auto b = load_pack<kCount>(grad_out + row * head_dim + c);
#pragma unroll
    for (int i = 0; i < kCount; ++i) {
      sum += to_float(a[i]) * to_float(b[i]);
    }
  }
  const std::int64_t token = row / num_heads, head = row % num_heads;
  const std::int64_t sequence = token / query_length, query = token % query_length;
  delta[(sequence * num_heads + head) * query_length + query] = factor * sum;
}

bool aligned(const void* data) { return reinterpret_cast<std::uintptr_t>(data) % 16 == 0; }

}  // namespace

void attention_delta(Stream& stream, const AttentionBackward& k, float factor,
                     const Tensor& delta) {
  const AttentionProblem& problem = k.problem;
  const std::int64_t rows = problem.num_sequences * problem.query_length * problem.num_heads;
  if (rows == 0) {
    return;
  }
  dispatch_device(problem.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    constexpr int kCount = kPackSize<T>;
    const bool packs =
        problem.head_dim % kCount == 0 && aligned(k.out.data) && aligned(k.grad_out.data);
    const auto kernel = packs ? delta_rows<kCount, T> : delta_rows<1, T>;
    kernel<<<num_blocks(rows, kThreads), kThreads, 0, cuda_stream(stream)>>>(
        k.out.as<T>(), k.grad_out.as<T>(), static_cast<float*>(delta.data()), rows,
        static_cast<int>(problem.num_heads), static_cast<int>(problem.query_length),
        static_cast<int>(problem.head_dim), factor);
    check_launch("delta_rows");
  });
}

}  // namespace bloomery::attention_cuda
