// MD5 (RFC 1321), for the names of Megatron's index caches; no protection against forgery.
#pragma once

#include <string>
#include <string_view>

namespace bloomery {

// The digest as 32 lower-case hexadecimal digits.
std::string md5_hex(std::string_view text);

}  // namespace bloomery
