// Decompression of Parquet's pages: whole blocks of a size that is known.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

namespace bloomery {

// Numbers as files have them.
enum class ParquetCodec { none, snappy, gzip, lzo, brotli, lz4_framed, zstd, lz4_raw };

// The name of a codec that cannot be undone here; empty: it can.
std::string_view unsupported_codec(std::int64_t codec);

// The most that so many compressed bytes of a page may unpack to: what is beyond it is no page of
// data, but made to exhaust memory.
std::uint64_t most_unpacked(std::uint64_t packed_bytes);

// Undoes compression; keeps what libraries need from one block to the next.
class Unpacker {
 public:
  Unpacker();
  ~Unpacker();
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;

  // Fills all of `to`. Damaged data, and data of another size, are Errors.
  void unpack(ParquetCodec codec, std::string_view from, std::span<char> to);

 private:
  struct Contexts;
  std::unique_ptr<Contexts> contexts_;
};

// The two formats that are short enough to be undone here.
void unpack_snappy(std::string_view from, std::span<char> to);
void unpack_lz4(std::string_view from, std::span<char> to);

}  // namespace bloomery
