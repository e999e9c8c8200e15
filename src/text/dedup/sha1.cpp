#include "text/dedup/sha1.h"

#include <array>
#include <bit>
#include <cstring>

namespace bloomery {
namespace {

using State = std::array<std::uint32_t, 5>;
constexpr std::size_t kBlock = 64;

std::uint32_t big_endian(const unsigned char* bytes) {
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 |
         std::uint32_t{bytes[2]} << 8 | bytes[3];
}

void add_block(State& state, const unsigned char* block) {
  std::uint32_t words[80];
  for (int i = 0; i < 16; ++i) words[i] = big_endian(block + 4 * i);
  for (int i = 16; i < 80; ++i) {
    words[i] = std::rotl(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
  }
  auto [a, b, c, d, e] = state;
  for (int i = 0; i < 80; ++i) {
    std::uint32_t mixed = i < 20   ? ((b & c) | (~b & d)) + 0x5A827999
                          : i < 40 ? (b ^ c ^ d) + 0x6ED9EBA1
                          : i < 60 ? ((b & c) | (b & d) | (c & d)) + 0x8F1BBCDC
                                   : (b ^ c ^ d) + 0xCA62C1D6;
    mixed += std::rotl(a, 5) + e + words[i];
    e = d;
    d = c;
    c = std::rotl(b, 30);
    b = a;
    a = mixed;
  }
  state[0] += a;
  state[1] += b;
  state[2] += c;
  state[3] += d;
  state[4] += e;
}

}  // namespace

std::uint64_t sha1_start(std::string_view text) {
  State state = {0x67452301, 0xEFCDAB89, 0x98BADCFE, 0x10325476, 0xC3D2E1F0};
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  std::size_t at = 0;
  for (; at + kBlock <= text.size(); at += kBlock) add_block(state, bytes + at);
  unsigned char last[2 * kBlock] = {};
  const std::size_t rest = text.size() - at;
  std::memcpy(last, bytes + at, rest);
  last[rest] = 0x80;
  const std::size_t size = rest + 9 <= kBlock ? kBlock : 2 * kBlock;
  const std::uint64_t bits = 8 * static_cast<std::uint64_t>(text.size());
  for (int i = 0; i < 8; ++i) last[size - 1 - i] = static_cast<unsigned char>(bits >> (8 * i));
  for (std::size_t block = 0; block < size; block += kBlock) add_block(state, last + block);
  std::uint64_t start = 0;
  for (int i = 0; i < 8; ++i) {
    start |= std::uint64_t{state[static_cast<std::size_t>(i / 4)] >> (24 - 8 * (i % 4)) & 0xFF}
             << (8 * i);
  }
  return start;
}

}  // namespace bloomery
