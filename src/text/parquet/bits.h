// Bits and integers of Parquet's encodings, least significant first.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "base/error.h"

namespace bloomery {

inline std::int64_t undo_zigzag(std::uint64_t value) {
  return static_cast<std::int64_t>((value >> 1) ^ (0 - (value & 1)));
}

// A little-endian integer at bytes[at], which must be there.
template <class Integer>
Integer load(std::string_view bytes, std::size_t at) {
  Integer value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

// `width` bits, 64 at most, from bit `at` on, which must be there.
inline std::uint64_t bits_at(std::string_view bytes, std::uint64_t at, int width) {
  if (width == 0) return 0;
  const std::size_t first = at / 8;
  const int shift = static_cast<int>(at % 8);
  std::uint64_t low = 0;
  if (first + sizeof low <= bytes.size()) {
    low = load<std::uint64_t>(bytes, first);
  } else {
    std::memcpy(&low, bytes.data() + first, bytes.size() - first);
  }
  std::uint64_t value = low >> shift;
  if (shift + width > 64) {
    value |= std::uint64_t{static_cast<std::uint8_t>(bytes[first + 8])} << (64 - shift);
  }
  return width == 64 ? value : value & ((std::uint64_t{1} << width) - 1);
}

// Takes an integer of seven bits a byte from the front.
inline std::uint64_t take_varint(std::string_view& bytes) {
  std::uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    check(!bytes.empty(), "its bytes end inside an integer");
    const auto part = static_cast<std::uint8_t>(bytes.front());
    bytes.remove_prefix(1);
    value |= std::uint64_t{part & 0x7Fu} << shift;
    if (part < 0x80) return value;
  }
  throw Error("an integer of more than 64 bits");
}

// Takes `count` bytes from the front.
inline std::string_view take_bytes(std::string_view& bytes, std::uint64_t count) {
  if (count > bytes.size()) [[unlikely]] {
    throw Error(concat("it needs ", count, " bytes more where ", bytes.size(), " are left"));
  }
  const std::string_view taken = bytes.substr(0, count);
  bytes.remove_prefix(count);
  return taken;
}

// Takes bytes with their length in four bytes before them.
inline std::string_view take_prefixed(std::string_view& bytes) {
  const auto length = load<std::uint32_t>(take_bytes(bytes, sizeof(std::uint32_t)), 0);
  return take_bytes(bytes, length);
}

}  // namespace bloomery
