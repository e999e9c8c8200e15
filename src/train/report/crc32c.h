// CRC-32C (Castagnoli), the checksum of TFRecord files, and the form in which they store it.
#pragma once

#include <cstdint>
#include <string_view>

namespace bloomery {

std::uint32_t crc32c(std::string_view bytes);
// Rotated and shifted, so that the checksum of data which holds checksums stays a good one.
std::uint32_t masked_crc32c(std::string_view bytes);

}  // namespace bloomery
