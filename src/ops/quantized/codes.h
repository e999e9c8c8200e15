// What the codes of the formats stand for, in parts of their scale; for kernels of both devices.
#pragma once

#include "ops/fp8/fp8_format.h"
#include "tensor/quantized.h"

namespace bloomery {

inline constexpr int kNf4Codes = 16;
constexpr float nf4_number(int code) {
  constexpr float kNumbers[kNf4Codes] = {-1.0f,
                                         -0.6961928009986877f,
                                         -0.5250730514526367f,
                                         -0.39491748809814453f,
                                         -0.28444138169288635f,
                                         -0.18477343022823334f,
                                         -0.09105003625154495f,
                                         0.0f,
                                         0.07958029955625534f,
                                         0.16093020141124725f,
                                         0.24611230194568634f,
                                         0.33791524171829224f,
                                         0.44070982933044434f,
                                         0.5626170039176941f,
                                         0.7229568362236023f,
                                         1.0f};
  return kNumbers[code];
}

// The nearest number's code for a part of the scale: as many as there are midpoints below it.
constexpr std::uint8_t nf4_code(float part) {
  int code = 0;
  for (int i = 0; i + 1 < kNf4Codes; ++i) {
    code += part > (nf4_number(i) + nf4_number(i + 1)) / 2 ? 1 : 0;
  }
  return static_cast<std::uint8_t>(code);
}

// Codes of a byte. Sizes of parts are at most 1, up to rounding.
template <QuantizedFormat kFormat>
struct ByteCode;

template <>
struct ByteCode<QuantizedFormat::int8> {
  static constexpr float kLargest = 127;
  static constexpr std::uint8_t encode(float part) {
    // A sum so large has no fraction: it was rounded to nearest, ties to even, and ends in the
    // integer. The product is exact, so that no compiler changes a bit.
    const double sum = static_cast<double>(part) * static_cast<double>(kLargest) + 0x1.8p52;
    return static_cast<std::uint8_t>(std::bit_cast<std::uint64_t>(sum));
  }
  static constexpr float number(std::uint8_t code) {  // times kLargest
    return static_cast<float>(static_cast<std::int8_t>(code));
  }
};

template <>
struct ByteCode<QuantizedFormat::fp8> {
  static constexpr float kLargest = 448;
  static constexpr std::uint8_t encode(float part) {
    return bloomery::encode<Fp8Format::e4m3>(part * kLargest);
  }
  static constexpr float number(std::uint8_t code) { return decode<Fp8Format::e4m3>(code); }
};

template <QuantizedFormat kFormat>
struct QuantizedTag {
  static constexpr QuantizedFormat format = kFormat;
};
// Calls body(QuantizedTag<format>{}) for a format of bytes.
template <class Body>
decltype(auto) dispatch_bytes(QuantizedFormat format, Body&& body) {
  return format == QuantizedFormat::int8 ? body(QuantizedTag<QuantizedFormat::int8>{})
                                         : body(QuantizedTag<QuantizedFormat::fp8>{});
}

}  // namespace bloomery
