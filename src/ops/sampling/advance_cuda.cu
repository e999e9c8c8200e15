#include "device/cuda_check.h"
#include "ops/sampling/sampling.h"

namespace bloomery {
namespace {

constexpr int kThreads = 256;

// One block, since all rows read the number of the step.
__global__ void __launch_bounds__(kThreads) advance(const __grid_constant__ AdvanceRows k) {
  const int step = *k.step;
  Drawn* const out = k.ring + step % k.ring_steps * k.ring_rows;
  for (std::int64_t i = threadIdx.x; i < k.count; i += kThreads) {
    Drawn drawn;
    advance_row(k, i, drawn);
    out[i] = drawn;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    *k.step = step + 1;
  }
}

}  // namespace

void run(OnCuda, Stream& stream, const AdvanceRows& k) {
  advance<<<1, kThreads, 0, cuda_stream(stream)>>>(k);
  check_launch("advance_rows");
}

}  // namespace bloomery
