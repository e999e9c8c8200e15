#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <limits>

#include "ops/common/convert.h"
#include "ops/fp8/quantize.h"

namespace bloomery {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

// Sizes of numbers as integers, which have the same order; NaN is above all.
std::int32_t size_bits(float x) { return std::bit_cast<std::int32_t>(x) & 0x7FFFFFFF; }

// By several threads at once.
void raise(const View& amax, std::int32_t bits) {
  const std::atomic_ref<float> place(*amax.as<float>());
  float old = place.load(std::memory_order_relaxed);
  while (size_bits(old) < bits && !place.compare_exchange_weak(old, std::bit_cast<float>(bits))) {
  }
}

// The numbers of sixteen rows from (row, column) on, as many columns.
using Numbers = float[kFp8Multiple][kFp8Multiple];

template <Activation kActivation, class T>
void load_numbers(const Quantize& k, std::int64_t row, std::int64_t column, Numbers& numbers) {
  const std::int64_t columns = k.x.columns();
  for (std::int64_t r = 0; r < kFp8Multiple; ++r) {
    const std::int64_t at = (row + r) * columns + column;
    for (std::int64_t c = 0; c < kFp8Multiple; ++c) {
      auto x = static_cast<float>(load(k.x.as<T>() + at + c));
      if (k.derivative_at) {
        const auto point = static_cast<float>(load(k.derivative_at.as<T>() + at + c));
        x *= activation_derivative<kActivation, kAccuracyFor<T>>(point);
      } else {
        x = activate<kActivation, kAccuracyFor<T>>(x);
      }
      numbers[r][c] = x;
    }
  }
}

// Writes the copies of such numbers and adds to the sums of their columns; returns the largest
// size.
template <Fp8Format kFormat>
std::int32_t store_bytes(const Quantize& k, std::int64_t row, std::int64_t column, float scale,
                         const Numbers& numbers, float* sums) {
  const std::int64_t rows = k.x.rows(), columns = k.x.columns();
  std::int32_t bits = 0;
  for (std::int64_t r = 0; r < kFp8Multiple; ++r) {
    for (std::int64_t c = 0; c < kFp8Multiple; ++c) {
      const float x = numbers[r][c];
      const std::uint8_t byte = encode<kFormat>(std::isinf(x) ? kNan : x * scale);
      bits = std::max(bits, size_bits(x));
      sums[c] += x;
      if (k.rows) {
        k.rows.as<std::uint8_t>()[(row + r) * columns + column + c] = byte;
      }
      if (k.transposed) {
        k.transposed.as<std::uint8_t>()[(column + c) * rows + row + r] = byte;
      }
    }
  }
  return bits;
}

using LoadNumbers = void (*)(const Quantize&, std::int64_t, std::int64_t, Numbers&);
LoadNumbers loading(const Quantize& k) {
  return dispatch_activation(k.activation, [&](auto activation) {
    return dispatch_floating(k.x.dtype, [&](auto tag) -> LoadNumbers {
      return load_numbers<decltype(activation)::value, typename decltype(tag)::type>;
    });
  });
}

template <Fp8Format kFormat>
void quantize(ThreadPool& pool, const Quantize& k, float scale) {
  const LoadNumbers load_numbers = loading(k);
  const std::int64_t rows = k.x.rows(), columns = k.x.columns();
  pool.for_each(num_fp8_sum_parts(rows), [&](std::int64_t part) {
    std::int32_t bits = 0;
    const std::int64_t first = part * kColumnSumRows, last = std::min(rows, first + kColumnSumRows);
    for (std::int64_t column = 0; column < columns; column += kFp8Multiple) {
      float sums[kFp8Multiple] = {};
      for (std::int64_t row = first; row < last; row += kFp8Multiple) {
        Numbers numbers;
        load_numbers(k, row, column, numbers);
        bits = std::max(bits, store_bytes<kFormat>(k, row, column, scale, numbers, sums));
      }
      if (k.column_sums) {
        std::copy_n(sums, kFp8Multiple, k.column_sums.as<float>() + part * columns + column);
      }
    }
    if (k.amax) {
      raise(k.amax, bits);
    }
  });
}

}  // namespace

template <>
void run(ThisCpu, Stream& stream, const Quantize& k) {
  check_quantize(k);
  dispatch_fp8(k.format, [&](auto format) {
    quantize<decltype(format)::format>(stream.device().pool(), k, *k.scale.as<float>());
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
