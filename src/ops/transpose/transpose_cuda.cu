#include "device/cuda_check.h"
#include "ops/common/dispatch_cuda.cuh"
#include "ops/transpose/transpose.h"

namespace bloomery {
namespace {

constexpr int kThreads = 256;

// A thread copies one unit of a row of y.
template <class Unit>
__global__ void transpose(const Unit* x, Unit* y, std::int64_t first, std::int64_t second,
                          std::int64_t inner) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= first * second * inner) {
    return;
  }
  const std::int64_t row = i / inner, b = row / first, a = row % first;
  y[i] = x[(a * second + b) * inner + i % inner];
}

template <class Unit>
bool fits(const Transpose& k) {
  const auto aligned = [](const void* p) {
    return reinterpret_cast<std::uintptr_t>(p) % sizeof(Unit) == 0;
  };
  return k.row_bytes() % static_cast<std::int64_t>(sizeof(Unit)) == 0 && aligned(k.x.data) &&
         aligned(k.y.data);
}

template <class Unit>
void start(Stream& stream, const Transpose& k) {
  const std::int64_t inner = k.row_bytes() / static_cast<std::int64_t>(sizeof(Unit));
  transpose<<<num_blocks(k.first * k.second * inner, kThreads), kThreads, 0, cuda_stream(stream)>>>(
      static_cast<const Unit*>(k.x.data), static_cast<Unit*>(k.y.data), k.first, k.second, inner);
  check_launch("transpose");
}

}  // namespace

void run(OnCuda, Stream& stream, const Transpose& k) {
  if (k.x.bytes() == 0) {
    return;
  }
  if (fits<uint4>(k)) {
    start<uint4>(stream, k);
  } else if (fits<std::uint16_t>(k)) {
    start<std::uint16_t>(stream, k);
  } else {
    start<std::uint8_t>(stream, k);
  }
}

}  // namespace bloomery
