#include <algorithm>
#include <atomic>
#include <bit>

#include "ops/common/convert.h"
#include "ops/fp8/quantize.h"

namespace bloomery {
namespace {

// Sizes of numbers as integers, which have the same order; NaN is above all.
std::int32_t size_bits(float x) { return std::bit_cast<std::int32_t>(x) & 0x7FFFFFFF; }

// By several threads at once.
void raise(const View& amax, std::int32_t bits) {
  const std::atomic_ref<float> place(*amax.as<float>());
  float old = place.load(std::memory_order_relaxed);
  while (size_bits(old) < bits && !place.compare_exchange_weak(old, std::bit_cast<float>(bits))) {
  }
}

// Sixteen rows at a time, so that the transposed copy is written in runs.
template <Fp8Format kFormat, class T>
void quantize(ThreadPool& pool, const Quantize& k, float scale) {
  const std::int64_t rows = k.x.rows(), columns = k.x.columns();
  pool.for_ranges(rows / kFp8Multiple, 1, [&](std::int64_t begin, std::int64_t end) {
    std::int32_t largest_bits = 0;
    for (std::int64_t i = begin * kFp8Multiple; i < end * kFp8Multiple; i += kFp8Multiple) {
      for (std::int64_t j = 0; j < columns; j += kFp8Multiple) {
        std::uint8_t tile[kFp8Multiple][kFp8Multiple];
        for (std::int64_t r = 0; r < kFp8Multiple; ++r) {
          const T* from = k.x.as<T>() + (i + r) * columns + j;
          for (std::int64_t c = 0; c < kFp8Multiple; ++c) {
            const auto x = static_cast<float>(load(from + c));
            largest_bits = std::max(largest_bits, size_bits(x));
            tile[r][c] = encode<kFormat>(x * scale);
          }
          if (k.rows) {
            std::copy_n(tile[r], kFp8Multiple, k.rows.as<std::uint8_t>() + (i + r) * columns + j);
          }
        }
        for (std::int64_t c = 0; k.transposed && c < kFp8Multiple; ++c) {
          auto* to = k.transposed.as<std::uint8_t>() + (j + c) * rows + i;
          for (std::int64_t r = 0; r < kFp8Multiple; ++r) {
            to[r] = tile[r][c];
          }
        }
      }
    }
    if (k.amax) {
      raise(k.amax, largest_bits);
    }
  });
}

}  // namespace

template <>
void run(ThisCpu, Stream& stream, const Quantize& k) {
  check_quantize(k);
  dispatch_fp8(k.format, [&](auto format) {
    dispatch_floating(k.x.dtype, [&](auto tag) {
      quantize<decltype(format)::format, typename decltype(tag)::type>(stream.device().pool(), k,
                                                                       *k.scale.as<float>());
    });
  });
}

template <>
void run(ThisCpu, Stream& stream, const RaiseAmax& k) {
  constexpr std::int64_t kGrain = 16384;
  dispatch_floating(k.x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    stream.device().pool().for_ranges(
        k.x.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
          std::int32_t bits = 0;
          for (std::int64_t i = begin; i < end; ++i) {
            bits = std::max(bits, size_bits(static_cast<float>(load(k.x.as<T>() + i))));
          }
          raise(k.amax, bits);
        });
  });
}

template <>
void run(ThisCpu, Stream& stream, const Dequantize& k) {
  constexpr std::int64_t kGrain = 16384;
  const float factor = *k.inverse_scale.as<float>();
  dispatch_fp8(k.format, [&](auto tag) {
    stream.device().pool().for_ranges(
        k.x.numel(), kGrain, [&](std::int64_t begin, std::int64_t end) {
          for (std::int64_t i = begin; i < end; ++i) {
            k.y.as<float>()[i] = decode<decltype(tag)::format>(k.x.as<std::uint8_t>()[i]) * factor;
          }
        });
  });
}

}  // namespace bloomery
