// The types in which a corpus stores its tokens, and ids in and out of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "tokenizer/tokenizer.h"

namespace bloomery {

// The codes of the file format.
enum class TokenType : std::uint8_t {
  u8 = 1,
  i8 = 2,
  i16 = 3,
  i32 = 4,
  i64 = 5,
  f64 = 6,
  f32 = 7,
  u16 = 8
};

std::optional<TokenType> token_type_of_code(std::uint64_t code);
std::size_t size_of(TokenType type);
const char* name(TokenType type);
// Megatron's rule: 16 bits below 65,500 tokens, else 32.
TokenType token_type_for(std::int64_t vocab_size);

// One id per element of `stored`, which holds out.size() of them at any alignment. A value that is
// no 32-bit integer is an Error.
void decode_tokens(TokenType type, std::span<const std::byte> stored, std::span<TokenId> out);

// The reverse. An id that the type cannot hold is an Error that names it.
void encode_tokens(TokenType type, std::span<const TokenId> ids, std::span<std::byte> out);

}  // namespace bloomery
