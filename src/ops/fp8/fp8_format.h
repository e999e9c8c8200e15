// Floating-point numbers of 8 bits, stored as bytes. E4M3 has no infinity and reaches 448; E5M2
// reaches 57344. A tensor of them has one scale: a number x is stored as the byte of x * scale.
#pragma once

#include <bit>
#include <cstdint>
#include <ostream>

namespace bloomery {

enum class Fp8Format : std::uint8_t { none, e4m3, e5m2 };

constexpr const char* name(Fp8Format format) {
  return format == Fp8Format::e4m3 ? "e4m3" : format == Fp8Format::e5m2 ? "e5m2" : "none";
}
inline std::ostream& operator<<(std::ostream& out, Fp8Format format) { return out << name(format); }

// The largest finite number.
constexpr float largest(Fp8Format format) { return format == Fp8Format::e4m3 ? 448.0f : 57344.0f; }

// Where the bits of fp32 and of a format differ.
template <Fp8Format kFormat>
struct Fp8Bits {
  static constexpr bool kIsE4m3 = kFormat == Fp8Format::e4m3;
  static constexpr int kDropped = kIsE4m3 ? 20 : 21;          // bits of the mantissa
  static constexpr std::int32_t kBias = kIsE4m3 ? 120 : 112;  // difference of the exponents' biases
  static constexpr std::int32_t kLargest = kIsE4m3 ? 0x7E : 0x7B;
  // The last place of numbers in [x, 2x) is that of subnormal numbers here.
  static constexpr float kSubnormalUnit = kIsE4m3 ? 0x1p14f : 0x1p7f;
  static constexpr std::int32_t kSmallestNormal = (kBias + 1) << 23;
};

// Round to nearest, ties to even; what is larger than the largest becomes that; NaN stays NaN, as
// one byte. By integer arithmetic without branches, so that loops vectorise.
template <Fp8Format kFormat>
constexpr std::uint8_t encode(float value) {
  using Bits = Fp8Bits<kFormat>;
  const auto word = std::bit_cast<std::int32_t>(value);
  const std::int32_t size = word & 0x7FFFFFFF;
  constexpr std::int32_t kHalf = (1 << (Bits::kDropped - 1)) - 1;
  const std::int32_t normal =
      (size - (Bits::kBias << 23) + kHalf + ((size >> Bits::kDropped) & 1)) >> Bits::kDropped;
  const std::int32_t subnormal =
      std::bit_cast<std::int32_t>(std::bit_cast<float>(size) + Bits::kSubnormalUnit) -
      std::bit_cast<std::int32_t>(Bits::kSubnormalUnit);
  std::int32_t rounded = size < Bits::kSmallestNormal ? subnormal : normal;
  rounded = rounded > Bits::kLargest ? Bits::kLargest : rounded;
  rounded |= (word >> 24) & 0x80;
  return static_cast<std::uint8_t>(size > 0x7F800000 ? 0x7F : rounded);
}

template <Fp8Format kFormat>
constexpr float decode(std::uint8_t byte) {
  using Bits = Fp8Bits<kFormat>;
  // Multiplying undoes the difference in bias and normalises subnormal numbers.
  constexpr float kUnbias = Bits::kIsE4m3 ? 0x1p120f : 0x1p112f;
  const std::uint32_t size = byte & 0x7Fu, sign = (byte & 0x80u) << 24;
  const float number = std::bit_cast<float>(size << Bits::kDropped) * kUnbias;
  const std::uint32_t special = Bits::kIsE4m3   ? (size == 0x7Fu ? 0x7FC00000u : 0u)
                                : size > 0x7Cu  ? 0x7FC00000u
                                : size == 0x7Cu ? 0x7F800000u
                                                : 0u;
  return std::bit_cast<float>((special != 0 ? special : std::bit_cast<std::uint32_t>(number)) |
                              sign);
}

// Calls body(Fp8Tag<format>{}) for the format.
template <Fp8Format kFormat>
struct Fp8Tag {
  static constexpr Fp8Format format = kFormat;
};
template <class Body>
decltype(auto) dispatch_fp8(Fp8Format format, Body&& body) {
  return format == Fp8Format::e5m2 ? body(Fp8Tag<Fp8Format::e5m2>{})
                                   : body(Fp8Tag<Fp8Format::e4m3>{});
}

}  // namespace bloomery
