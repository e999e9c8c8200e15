#include "device/cuda_check.h"
#include "ops/common/dispatch_cuda.cuh"
#include "ops/common/octet.cuh"
#include "ops/dropout/dropout.h"
#include "ops/dropout/mask_cuda.cuh"

namespace bloomery {
namespace {

constexpr int kRowsPerBlock = 8;  // a warp per row

template <class From, class To>
__global__ void apply_by_octets(const From* x, To* y, std::int64_t rows, std::int64_t columns,
                                DropoutMask mask, bool add) {
  const std::int64_t row = std::int64_t{blockIdx.x} * kRowsPerBlock + threadIdx.x / kWarpSize;
  if (row >= rows) {
    return;
  }
  const RowMask row_mask(mask, row);
  const int lane = threadIdx.x % kWarpSize;
  for (std::int64_t c = lane * kOctet; c < columns; c += kWarpSize * kOctet) {
    const std::int64_t at = row * columns + c;
    const Octet<From> in = load_octet(x + at);
    const Octet<To> earlier = add ? load_octet(y + at) : zero_octet<To>();
    float factors[kOctet], out[kOctet];
    row_mask.factors(c, factors);
#pragma unroll
    for (int i = 0; i < kOctet; ++i) {
      out[i] = fmaf(factors[i], in[i], earlier[i]);
    }
    store_octet(y + at, to_octet<To>(out));
  }
}

template <class From, class To>
__global__ void apply_by_element(const From* x, To* y, std::int64_t rows, std::int64_t columns,
                                 DropoutMask mask, bool add) {
  const std::int64_t row = std::int64_t{blockIdx.x} * kRowsPerBlock + threadIdx.x / kWarpSize;
  if (row >= rows) {
    return;
  }
  const RowMask row_mask(mask, row);
  for (std::int64_t c = threadIdx.x % kWarpSize; c < columns; c += kWarpSize) {
    const std::int64_t at = row * columns + c;
    const float earlier = add ? to_float(y[at]) : 0.0f;
    y[at] = from_float<To>(fmaf(row_mask.factor(c), to_float(x[at]), earlier));
  }
}

}  // namespace

void run(OnCuda, Stream& stream, const ApplyDropout& k) {
  if (k.x.numel() == 0) {
    return;
  }
  dispatch_device(k.x.dtype, [&](auto from) {
    dispatch_device(k.y.dtype, [&](auto to) {
      using From = typename decltype(from)::type;
      using To = typename decltype(to)::type;
      const bool octets = fits_octets(k.x.columns(), k.x.as<From>(), k.y.as<To>());
      const auto kernel = octets ? apply_by_octets<From, To> : apply_by_element<From, To>;
      const unsigned blocks = num_blocks(k.x.rows(), kRowsPerBlock);
      kernel<<<blocks, kRowsPerBlock * kWarpSize, 0, cuda_stream(stream)>>>(
          k.x.as<From>(), k.y.as<To>(), k.x.rows(), k.x.columns(), k.mask, k.add);
      check_launch("apply_dropout");
    });
  });
}

}  // namespace bloomery
