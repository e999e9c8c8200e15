#include "text/parquet/codec.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/error.h"

namespace bloomery {
namespace {

using namespace std::string_literals;

std::string unpacked(ParquetCodec codec, std::string_view from, std::size_t size) {
  std::string to(size, '\0');
  Unpacker().unpack(codec, from, to);
  return to;
}

TEST(ParquetCodec, Snappy) {
  // "ab", three bytes from two back, a literal of 61 bytes, four bytes from 66 back.
  const std::string literal(61, 'z');
  const std::string packed =
      "\x46\x04"s + "ab" + "\x0A\x02\0"s + "\xF0\x3C"s + literal + "\x01\x42"s;
  EXPECT_EQ(unpacked(ParquetCodec::snappy, packed, 70), "ababa" + literal + "abab");
  const std::string far = "\x08\x00x\x1B\x01\0\0\0"s;  // seven bytes, the distance in four
  EXPECT_EQ(unpacked(ParquetCodec::snappy, far, 8), std::string(8, 'x'));
}

TEST(ParquetCodec, Lz4) {
  // 16 literals, 19 bytes from 16 back, 2 literals.
  const std::string packed = "\xFF\x01"s + "0123456789abcdef" + "\x10\0\0"s + "\x20" + "yz";
  EXPECT_EQ(unpacked(ParquetCodec::lz4_raw, packed, 37), "0123456789abcdef0123456789abcdef012yz");
}

TEST(ParquetCodec, DamagedBlocksAreErrors) {
  for (const auto& [codec, packed, size] :
       std::vector<std::tuple<ParquetCodec, std::string, std::size_t>>{
           {ParquetCodec::snappy, "", 1},
           {ParquetCodec::snappy, "\x05\x04"s + "ab", 5},             // too short
           {ParquetCodec::snappy, "\x02\x04"s + "ab", 3},             // of another size
           {ParquetCodec::snappy, "\x05\x04"s + "ab\x0A\x03\0"s, 5},  // from before the beginning
           {ParquetCodec::snappy, "\x05\x04"s + "ab\x0A\0\0"s, 5},    // from nowhere
           {ParquetCodec::snappy, "\x02\x08"s + "abc", 2},            // too long
           {ParquetCodec::snappy, "\x05\xFC\xFF\xFF\xFF\xFF"s, 5},
           {ParquetCodec::lz4_raw, "\x21"s + "ab\x03\0"s, 7},
           {ParquetCodec::lz4_raw, "\xFF\xFF\xFF"s, 7},
           {ParquetCodec::lz4_raw, "\x20"s + "ab", 1},
           {ParquetCodec::zstd, "no zstd", 7},
           {ParquetCodec::gzip, "no gzip", 7},
           {ParquetCodec::none, "ab", 3}}) {
    EXPECT_THROW(unpacked(codec, packed, size), Error) << static_cast<int>(codec) << packed;
  }
}

TEST(ParquetCodec, NamesWhatIsNotRead) {
  EXPECT_EQ(unsupported_codec(4), "Brotli");
  EXPECT_NE(unsupported_codec(-1), "");
  for (const int codec : {0, 1, 2, 6, 7}) EXPECT_EQ(unsupported_codec(codec), "");
}

}  // namespace
}  // namespace bloomery
