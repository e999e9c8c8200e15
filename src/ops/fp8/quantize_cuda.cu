#include <algorithm>

#include "ops/fp8/quantize_tile.cuh"

namespace bloomery {
namespace {

using namespace fp8;

template <class T>
__global__ void __launch_bounds__(kThreads)
    largest_size(const T* x, std::int64_t count, float* amax) {
  int bits = 0;
  const std::int64_t step = std::int64_t{gridDim.x} * kThreads;
  for (std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x; i < count / kOctet;
       i += step) {
    const Octet<T> in = load_octet(x + i * kOctet);
#pragma unroll
    for (int j = 0; j < kOctet; ++j) {
      bits = max(bits, size_bits(in[j]));
    }
  }
  raise_amax(amax, bits);
}

}  // namespace

void run(OnCuda, Stream& stream, const Quantize& k) {
  check_quantize(k);
  check(fits_octets(k.x.columns(), k.x.data, k.rows.data, k.transposed.data, k.derivative_at.data),
        "fp8: matrices must start at multiples of 16 bytes");
  if (k.x.numel() == 0) {
    return;
  }
  if (k.activation != Activation::none) {
    return quantize_activation(stream, k);
  }
  dispatch_fp8(k.format, [&](auto format) {
    dispatch_device(k.x.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      launch_copies<decltype(format)::format, Source::plain, Activation::none, T>(stream, k);
    });
  });
}

void run(OnCuda, Stream& stream, const RaiseAmax& k) {
  check(fits_octets(k.x.numel(), k.x.data), "fp8: the largest of ", k.x.shape,
        " needs whole octets that start at 16 bytes");
  if (k.x.numel() == 0) {
    return;
  }
  constexpr unsigned kMostBlocks = 1024;
  const unsigned blocks =
      std::min(num_blocks(k.x.numel(), std::int64_t{kThreads} * kOctet * 4), kMostBlocks);
  dispatch_device(k.x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    largest_size<<<blocks, kThreads, 0, cuda_stream(stream)>>>(k.x.as<T>(), k.x.numel(),
                                                               k.amax.as<float>());
    check_launch("largest_size");
  });
}

}  // namespace bloomery
