#include <algorithm>
#include <bit>

#include "ops/common/convert.h"
#include "ops/quantized/codes.h"
#include "ops/quantized/quantized.h"

namespace bloomery {
namespace {

constexpr std::int64_t kNumbersAtOnce = 1 << 15;

// The largest size; NaN is above all.
template <class T>
Accumulator<T> largest_size(const T* x, std::int64_t count) {
  using Real = Accumulator<T>;
  using Bits = std::conditional_t<sizeof(Real) == 8, std::int64_t, std::int32_t>;
  constexpr Bits kSize = static_cast<Bits>(~(std::uint64_t{1} << (8 * sizeof(Real) - 1)));
  Bits bits = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    bits = std::max<Bits>(bits, std::bit_cast<Bits>(static_cast<Real>(load(x + i))) & kSize);
  }
  return std::bit_cast<Real>(bits);
}

// What numbers are multiplied by to become parts of their scale.
template <class Real>
Real inverse(Real scale) {
  return scale == 0 ? Real{0} : 1 / scale;
}

template <QuantizedFormat kFormat, class T>
void quantize_row(const T* x, std::int64_t columns, Accumulator<T> scale, std::uint8_t* codes) {
  const Accumulator<T> factor = inverse(scale);
  for (std::int64_t c = 0; c < columns; ++c) {
    codes[c] = ByteCode<kFormat>::encode(static_cast<float>(load(x + c) * factor));
  }
}

template <class T>
void quantize_nf4(const T* x, std::int64_t columns, T* scales, std::uint8_t* codes) {
  for (std::int64_t first = 0; first < columns; first += kNf4Block) {
    const std::int64_t count = std::min(kNf4Block, columns - first);
    const Accumulator<T> scale = largest_size(x + first, count), factor = inverse(scale);
    store(scales + first / kNf4Block, scale);
    std::uint8_t block[kNf4Block] = {};
    for (std::int64_t i = 0; i < count; ++i) {
      block[i] = nf4_code(static_cast<float>(load(x + first + i) * factor));
    }
    for (std::int64_t i = 0; i < count; i += 2) {
      codes[(first + i) / 2] = static_cast<std::uint8_t>(block[i] << 4 | block[i + 1]);
    }
  }
}

// Calls body(row) for all, with all threads.
template <class Body>
void for_rows(Stream& stream, std::int64_t rows, std::int64_t columns, const Body& body) {
  stream.device().pool().for_ranges(rows, std::max<std::int64_t>(1, kNumbersAtOnce / (columns + 1)),
                                    [&](std::int64_t begin, std::int64_t end) {
                                      for (std::int64_t row = begin; row < end; ++row) {
                                        body(row);
                                      }
                                    });
}

template <QuantizedFormat kFormat, class T>
void dequantize_row(const std::uint8_t* codes, std::int64_t columns, Accumulator<T> scale, T* y) {
  for (std::int64_t c = 0; c < columns; ++c) {
    const float part = ByteCode<kFormat>::number(codes[c]) / ByteCode<kFormat>::kLargest;
    store(y + c, static_cast<Accumulator<T>>(part) * scale);
  }
}

template <class T>
void dequantize_nf4(const std::uint8_t* codes, std::int64_t columns, const T* scales, T* y) {
  using Real = Accumulator<T>;
  for (std::int64_t first = 0; first < columns; first += kNf4Block) {
    const Real scale = load(scales + first / kNf4Block);
    const std::int64_t end = std::min(columns, first + kNf4Block);
    for (std::int64_t c = first; c < end; ++c) {
      const int shift = c % 2 == 0 ? 4 : 0;
      store(y + c, static_cast<Real>(nf4_number(codes[c / 2] >> shift & 15)) * scale);
    }
  }
}

}  // namespace

template <>
void run(ThisCpu, Stream& stream, const QuantizeRows& k) {
  const std::int64_t all = k.x.shape.back(), bytes = k.codes.shape.back(),
                     num_scales = k.scales.shape.back();
  dispatch_floating(k.x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_rows(stream, k.x.shape.rows(), all, [&](std::int64_t row) {
      const T* const x = k.x.as<T>() + row * all;
      std::uint8_t* const codes = k.codes.as<std::uint8_t>() + row * bytes;
      T* const scales = k.scales.as<T>() + row * num_scales;
      if (k.format == QuantizedFormat::nf4) {
        return quantize_nf4(x + k.first_column, k.columns, scales, codes);
      }
      const Accumulator<T> scale = largest_size(x, all);
      store(scales, scale);
      dispatch_bytes(k.format, [&](auto format) {
        quantize_row<decltype(format)::format>(x + k.first_column, k.columns, scale, codes);
      });
    });
  });
}

template <>
void run(ThisCpu, Stream& stream, const DequantizeRows& k) {
  const std::int64_t columns = k.y.shape.back(), bytes = k.codes.shape.back(),
                     num_scales = k.scales.shape.back();
  dispatch_floating(k.y.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for_rows(stream, k.y.shape.rows(), columns, [&](std::int64_t row) {
      const std::uint8_t* const codes = k.codes.as<std::uint8_t>() + row * bytes;
      const T* const scales = k.scales.as<T>() + row * num_scales;
      T* const y = k.y.as<T>() + row * columns;
      if (k.format == QuantizedFormat::nf4) {
        return dequantize_nf4(codes, columns, scales, y);
      }
      dispatch_bytes(k.format, [&](auto format) {
        dequantize_row<decltype(format)::format>(codes, columns, load(scales), y);
      });
    });
  });
}

}  // namespace bloomery
