#include "device/cuda_check.h"
#include "ops/arithmetic/copy_columns.h"
#include "ops/common/dispatch_cuda.cuh"

namespace bloomery {
namespace {

constexpr int kThreads = 256;

template <int kCount, class From, class To>
__global__ void copy_columns(const From* x, To* y, std::int64_t packs, std::int64_t packs_per_row,
                             std::int64_t x_width, std::int64_t y_width, bool add) {
  const std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (i >= packs) {
    return;
  }
  const std::int64_t row = i / packs_per_row, column = i % packs_per_row * kCount;
  const Pack<From, kCount> in = load_pack<kCount>(x + row * x_width + column);
  To* const target = y + row * y_width + column;
  Pack<To, kCount> out;
  if (add) {
    out = load_pack<kCount>(target);
  }
#pragma unroll
  for (int j = 0; j < kCount; ++j) {
    const float value = to_float(in[j]);
    out[j] = from_float<To>(add ? value + to_float(out[j]) : value);
  }
  store_pack(target, out);
}

template <class Element>
bool in_packs(const Element* first, std::int64_t width, std::int64_t count) {
  return width % count == 0 &&
         reinterpret_cast<std::uintptr_t>(first) % (count * sizeof(Element)) == 0;
}

}  // namespace

void run(OnCuda, Stream& stream, const CopyColumns& k) {
  if (k.rows * k.columns == 0) {
    return;
  }
  dispatch_device(k.x.dtype, [&](auto from) {
    dispatch_device(k.y.dtype, [&](auto to) {
      using From = typename decltype(from)::type;
      using To = typename decltype(to)::type;
      constexpr int kCount = 4;
      const From* const x = k.x.as<From>() + k.x_first;
      To* const y = k.y.as<To>() + k.y_first;
      const bool packed = k.columns % kCount == 0 && in_packs(x, k.x_width, kCount) &&
                          in_packs(y, k.y_width, kCount);
      const auto kernel = packed ? copy_columns<kCount, From, To> : copy_columns<1, From, To>;
      const std::int64_t per_row = packed ? k.columns / kCount : k.columns;
      kernel<<<num_blocks(k.rows * per_row, kThreads), kThreads, 0, cuda_stream(stream)>>>(
          x, y, k.rows * per_row, per_row, k.x_width, k.y_width, k.add);
      check_launch("copy_columns");
    });
  });
}

}  // namespace bloomery
