// SHA-1 (RFC 3174), for shingles as FineWeb hashes them; no protection against forgery.
#pragma once

#include <cstdint>
#include <string_view>

namespace bloomery {

// The first 8 bytes of the digest as a little-endian number.
std::uint64_t sha1_start(std::string_view text);

}  // namespace bloomery
