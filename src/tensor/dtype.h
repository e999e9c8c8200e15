// Element types. bf16 and fp16 are storage types: arithmetic happens in fp32.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <type_traits>
#include <utility>

#include "base/error.h"

namespace bloomery {

enum class DType : std::uint8_t { fp32, bf16, fp16, fp64, int32, int64, uint8 };

const char* name(DType dtype);
std::size_t size_of(DType dtype);
bool is_floating(DType dtype);
inline std::ostream& operator<<(std::ostream& out, DType dtype) { return out << name(dtype); }

// Round to nearest, ties to even; NaN stays NaN.
struct bfloat16 {
  std::uint16_t bits;
  bfloat16() = default;
  explicit constexpr bfloat16(float value) : bits(round(value)) {}
  explicit constexpr operator float() const {
    return std::bit_cast<float>(std::uint32_t{bits} << 16);
  }

 private:
  static constexpr std::uint16_t round(float value) {
    const auto word = std::bit_cast<std::uint32_t>(value);
    const std::uint32_t rounded = (word + 0x7FFFu + ((word >> 16) & 1u)) >> 16;
    const bool nan = (word & 0x7FFFFFFFu) > 0x7F800000u;
    return static_cast<std::uint16_t>(nan ? 0x7FFFu : rounded);
  }
};

// Converted by integer arithmetic without branches: loops vectorise at every instruction-set level,
// which they do not with the compiler's own half type.
struct float16 {
  std::uint16_t bits;
  float16() = default;
  explicit constexpr float16(float value) : bits(round(value)) {}
  explicit constexpr operator float() const {
    // The exponents differ by 112 in bias; multiplying also normalises subnormal numbers.
    const float scaled = std::bit_cast<float>((bits & 0x7FFFu) << 13) * 0x1p112f;
    const std::uint32_t special = (bits & 0x7C00u) == 0x7C00u ? 0x7F800000u : 0u;
    const std::uint32_t sign = (bits & 0x8000u) << 16;
    return std::bit_cast<float>(std::bit_cast<std::uint32_t>(scaled) | special | sign);
  }

 private:
  static constexpr std::uint16_t round(float value) {
    const auto word = std::bit_cast<std::int32_t>(value);
    const std::int32_t size = word & 0x7FFFFFFF;
    const std::int32_t normal = (size - (112 << 23) + 0xFFF + ((size >> 13) & 1)) >> 13;
    // The last place of numbers in [1/2, 1) is that of subnormal halves.
    const std::int32_t subnormal =
        std::bit_cast<std::int32_t>(std::bit_cast<float>(size) + 0.5f) - 0x3F000000;
    std::int32_t rounded = size < 0x38800000 ? subnormal : normal;
    rounded = size >= 0x477FF000 ? 0x7C00 : rounded;  // 65520 and above
    rounded = size > 0x7F800000 ? 0x7E00 : rounded;
    return static_cast<std::uint16_t>(rounded | ((word >> 16) & 0x8000));
  }
};

template <class T>
inline constexpr DType dtype_of = DType::uint8;
template <>
inline constexpr DType dtype_of<float> = DType::fp32;
template <>
inline constexpr DType dtype_of<double> = DType::fp64;
template <>
inline constexpr DType dtype_of<bfloat16> = DType::bf16;
template <>
inline constexpr DType dtype_of<float16> = DType::fp16;
template <>
inline constexpr DType dtype_of<std::int32_t> = DType::int32;
template <>
inline constexpr DType dtype_of<std::int64_t> = DType::int64;

template <class T>
struct TypeTag {
  using type = T;
};

// Calls body(TypeTag<T>{}) with the host type of a floating dtype.
template <class Body>
decltype(auto) dispatch_floating(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::fp32:
      return body(TypeTag<float>{});
    case DType::bf16:
      return body(TypeTag<bfloat16>{});
    case DType::fp16:
      return body(TypeTag<float16>{});
    case DType::fp64:
      return body(TypeTag<double>{});
    default:
      throw Error(concat("dtype ", name(dtype), " is not a floating-point type"));
  }
}

// What sums are kept in: double for fp64 (oracles), fp32 for everything else.
DType accumulation_dtype(DType dtype);
template <class T>
using Accumulator = std::conditional_t<std::is_same_v<T, double>, double, float>;

}  // namespace bloomery
