// A warp per row, or per block of nf4. Numbers, not packs of them: this runs once for each weight,
// and beside products of many rows.
#include "device/cuda_check.h"
#include "ops/common/dispatch_cuda.cuh"
#include "ops/quantized/codes.h"
#include "ops/quantized/quantized.h"

namespace bloomery {
namespace {

constexpr int kThreads = 256, kWarps = kThreads / kWarpSize;

__device__ __forceinline__ float inverse(float scale) { return scale == 0 ? 0.0f : 1 / scale; }

// The largest size of a row, in every lane; NaN is above all.
template <class T>
__device__ float largest_size(const T* x, std::int64_t count) {
  int bits = 0;
  for (std::int64_t i = threadIdx.x % kWarpSize; i < count; i += kWarpSize) {
    bits = max(bits, __float_as_int(to_float(x[i])) & 0x7FFFFFFF);
  }
  return __int_as_float(warp_max(bits));
}

__device__ __forceinline__ std::int64_t this_warp() {
  return std::int64_t{blockIdx.x} * kWarps + threadIdx.x / kWarpSize;
}

template <QuantizedFormat kFormat, class T>
__global__ void quantize_bytes(const T* x, std::int64_t rows, std::int64_t all,
                               std::int64_t first_column, std::int64_t columns, std::uint8_t* codes,
                               T* scales) {
  const std::int64_t row = this_warp();
  if (row >= rows) {
    return;
  }
  x += row * all;
  const int lane = threadIdx.x % kWarpSize;
  const float scale = largest_size(x, all), factor = inverse(scale);
  if (lane == 0) {
    scales[row] = from_float<T>(scale);
  }
  for (std::int64_t c = lane; c < columns; c += kWarpSize) {
    codes[row * columns + c] =
        ByteCode<kFormat>::encode(__fmul_rn(to_float(x[first_column + c]), factor));
  }
}

// A lane has two numbers of the block, which are one byte.
template <class T>
__global__ void quantize_nf4(const T* x, std::int64_t rows, std::int64_t all,
                             std::int64_t first_column, std::int64_t columns, std::uint8_t* codes,
                             T* scales) {
  static_assert(kNf4Block == 2 * kWarpSize);
  const std::int64_t blocks = (columns + kNf4Block - 1) / kNf4Block, bytes = (columns + 1) / 2;
  const std::int64_t row = this_warp() / blocks, block = this_warp() % blocks;
  if (row >= rows) {
    return;
  }
  const int lane = threadIdx.x % kWarpSize;
  const std::int64_t first = block * kNf4Block, at = first + 2 * lane;
  x += row * all + first_column;
  const float scale = largest_size(x + first, min(kNf4Block, columns - first));
  const float factor = inverse(scale);
  if (lane == 0) {
    scales[row * blocks + block] = from_float<T>(scale);
  }
  const auto code = [&](std::int64_t c) -> int {
    return c < columns ? nf4_code(__fmul_rn(to_float(x[c]), factor)) : 0;
  };
  if (at < columns) {
    codes[row * bytes + at / 2] = static_cast<std::uint8_t>(code(at) << 4 | code(at + 1));
  }
}

template <QuantizedFormat kFormat, class T>
__global__ void dequantize_bytes(const std::uint8_t* codes, const T* scales, std::int64_t count,
                                 std::int64_t columns, T* y) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < count) {
    const float part = __fdiv_rn(ByteCode<kFormat>::number(codes[i]), ByteCode<kFormat>::kLargest);
    y[i] = from_float<T>(part * to_float(scales[i / columns]));
  }
}

template <class T>
__global__ void dequantize_nf4(const std::uint8_t* codes, const T* scales, std::int64_t count,
                               std::int64_t columns, T* y) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kThreads + threadIdx.x;
  if (i < count) {
    const std::int64_t blocks = (columns + kNf4Block - 1) / kNf4Block, bytes = (columns + 1) / 2;
    const std::int64_t row = i / columns, c = i % columns;
    const int pair = codes[row * bytes + c / 2], code = c % 2 == 0 ? pair >> 4 : pair & 15;
    y[i] = from_float<T>(nf4_number(code) * to_float(scales[row * blocks + c / kNf4Block]));
  }
}

}  // namespace

void run(OnCuda, Stream& stream, const QuantizeRows& k) {
  const std::int64_t rows = k.x.shape.rows(), all = k.x.shape.back();
  const std::int64_t num_warps = rows * k.scales.shape.back();
  if (rows * k.columns == 0) {
    return;
  }
  const unsigned blocks = num_blocks(num_warps, kWarps);
  dispatch_device(k.x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    auto* const codes = k.codes.as<std::uint8_t>();
    if (k.format == QuantizedFormat::nf4) {
      quantize_nf4<T><<<blocks, kThreads, 0, cuda_stream(stream)>>>(
          k.x.as<T>(), rows, all, k.first_column, k.columns, codes, k.scales.as<T>());
    } else {
      dispatch_bytes(k.format, [&](auto format) {
        quantize_bytes<decltype(format)::format, T><<<blocks, kThreads, 0, cuda_stream(stream)>>>(
            k.x.as<T>(), rows, all, k.first_column, k.columns, codes, k.scales.as<T>());
      });
    }
    check_launch("quantize_rows");
  });
}

void run(OnCuda, Stream& stream, const DequantizeRows& k) {
  const std::int64_t count = k.y.numel(), columns = k.y.shape.back();
  if (count == 0) {
    return;
  }
  const unsigned blocks = num_blocks(count, kThreads);
  dispatch_device(k.y.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const auto* const codes = k.codes.as<std::uint8_t>();
    if (k.format == QuantizedFormat::nf4) {
      dequantize_nf4<T><<<blocks, kThreads, 0, cuda_stream(stream)>>>(codes, k.scales.as<T>(),
                                                                      count, columns, k.y.as<T>());
    } else {
      dispatch_bytes(k.format, [&](auto format) {
        dequantize_bytes<decltype(format)::format, T><<<blocks, kThreads, 0, cuda_stream(stream)>>>(
            codes, k.scales.as<T>(), count, columns, k.y.as<T>());
      });
    }
    check_launch("dequantize_rows");
  });
}

}  // namespace bloomery
