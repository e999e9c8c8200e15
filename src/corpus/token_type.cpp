#include "corpus/token_type.h"

#include <cassert>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/error.h"

namespace bloomery {
namespace {

// Calls body with a value of the C++ type of `type`.
template <class Body>
auto with_type(TokenType type, const Body& body) {
  switch (type) {
    case TokenType::u8:
      return body(std::uint8_t{});
    case TokenType::i8:
      return body(std::int8_t{});
    case TokenType::i16:
      return body(std::int16_t{});
    case TokenType::i32:
      return body(std::int32_t{});
    case TokenType::i64:
      return body(std::int64_t{});
    case TokenType::f64:
      return body(double{});
    case TokenType::f32:
      return body(float{});
    case TokenType::u16:
      break;
  }
  return body(std::uint16_t{});
}

using Limits = std::numeric_limits<TokenId>;

template <class T>
bool is_id(T value) {
  if constexpr (std::is_floating_point_v<T>) {
    const auto wide = static_cast<double>(value);  // a NaN fails the comparisons
    return wide >= Limits::min() && wide <= Limits::max() && wide == std::trunc(wide);
  } else {
    return value >= Limits::min() && value <= Limits::max();
  }
}

template <class T>
bool holds(TokenId id) {
  if constexpr (std::is_floating_point_v<T>) {
    return static_cast<double>(static_cast<T>(id)) == static_cast<double>(id);
  } else {
    return std::in_range<T>(id);
  }
}

}  // namespace

std::optional<TokenType> token_type_of_code(std::uint64_t code) {
  if (code < 1 || code > 8) {
    return std::nullopt;
  }
  return static_cast<TokenType>(code);
}

std::size_t size_of(TokenType type) {
  return with_type(type, [](auto value) { return sizeof(value); });
}

const char* name(TokenType type) {
  static constexpr const char* kNames[] = {"uint8", "int8",    "int16",   "int32",
                                           "int64", "float64", "float32", "uint16"};
  return kNames[static_cast<int>(type) - 1];
}

TokenType token_type_for(std::int64_t vocab_size) {
  return vocab_size < 65500 ? TokenType::u16 : TokenType::i32;
}

void decode_tokens(TokenType type, std::span<const std::byte> stored, std::span<TokenId> out) {
  assert(stored.size() == out.size() * size_of(type));
  with_type(type, [&]<class T>(T) {
    bool all_ids = true;
    for (std::size_t i = 0; i < out.size(); ++i) {
      T value;
      std::memcpy(&value, stored.data() + i * sizeof(T), sizeof(T));
      const bool good = is_id(value);
      all_ids &= good;
      out[i] = good ? static_cast<TokenId>(value) : 0;
    }
    if (!all_ids) {
      for (std::size_t i = 0; i < out.size(); ++i) {
        T value;
        std::memcpy(&value, stored.data() + i * sizeof(T), sizeof(T));
        check(is_id(value), "a token is ", value, " as ", name(type), ", which is no token id");
      }
    }
  });
}

void encode_tokens(TokenType type, std::span<const TokenId> ids, std::span<std::byte> out) {
  assert(out.size() == ids.size() * size_of(type));
  with_type(type, [&]<class T>(T) {
    for (std::size_t i = 0; i < ids.size(); ++i) {
      check(holds<T>(ids[i]), "token id ", ids[i], " does not fit into ", name(type),
            "; the vocabulary needs a larger type");
      const T value = static_cast<T>(ids[i]);
      std::memcpy(out.data() + i * sizeof(T), &value, sizeof(T));
    }
  });
}

}  // namespace bloomery
