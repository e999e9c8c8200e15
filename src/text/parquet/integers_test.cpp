#include "text/parquet/integers.h"

#include <gtest/gtest.h>

#include <string_view>

#include "base/error.h"

namespace bloomery {
namespace {

using namespace std::string_view_literals;

TEST(RleReader, RunsAndPackedValues) {
  // Three times 5, then 0 to 7 packed in three bits each.
  RleReader reader("\x06\x05\x03\x88\xC6\xFA"sv, 3);
  for (const std::uint32_t value : {5, 5, 5, 0, 1, 2, 3, 4, 5, 6, 7}) {
    EXPECT_EQ(reader.next(), value);
  }
  EXPECT_THROW(reader.next(), Error);
  RleReader wide("\x02\xFF\xFF\xFF\xFF"sv, 32);
  EXPECT_EQ(wide.next(), UINT32_MAX);
  RleReader nothing("\x03"sv, 0);
  for (int i = 0; i < 8; ++i) EXPECT_EQ(nothing.next(), 0u);
  EXPECT_THROW(nothing.next(), Error);
}

TEST(RleReader, DamagedRunsAreErrors) {
  for (const std::string_view bytes :
       {""sv, "\x06"sv, "\0\0\0\0"sv, "\xFF\xFF\xFF\xFF\xFF\xFF\xFF"sv,
        "\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF"sv}) {
    RleReader reader(bytes, 9);
    EXPECT_THROW(reader.next(), Error);
  }
  EXPECT_THROW(RleReader("", 33), Error);
}

// The example of Parquet's format description: 7, 5, 3, 1, 2, 3, 4, 5.
TEST(DeltaReader, Blocks) {
  // 128 differences in 4 parts, 8 values from 7 on; least difference -2, two bits each.
  DeltaReader reader(
      "\x80\x01\x04\x08\x0E"
      "\x03\x02\0\0\0\xC0\x3F\0\0\0\0\0\0"
      "behind"sv);
  EXPECT_EQ(reader.behind(), "behind");
  for (const std::int64_t value : {7, 5, 3, 1, 2, 3, 4, 5}) EXPECT_EQ(reader.next(), value);
  EXPECT_THROW(reader.next(), Error);
}

TEST(DeltaReader, DamagedBlocksAreErrors) {
  for (const std::string_view bytes :
       {""sv, "\0\x04\x08\x0E"sv, "\x80\x01\0\x08\x0E"sv, "\x80\x01\x07\x08\x0E"sv,
        "\x80\x01\x40\x08\x0E"sv, "\xFF\xFF\xFF\xFF\xFF\xFF\x01\x01\x08\x0E"sv}) {
    EXPECT_THROW(DeltaReader{bytes}, Error);
  }
  constexpr std::string_view kWide = "\x80\x01\x04\x08\x0E\x03\x41\0\0\0"sv;  // 65 bits
  DeltaReader reader(kWide);
  EXPECT_EQ(reader.next(), 7);
  EXPECT_THROW(reader.next(), Error);
  constexpr std::string_view kMany = "\x80\x01\x04\xFF\xFF\xFF\xFF\x7F\x0E\0\0\0\0\0"sv;
  EXPECT_THROW(DeltaReader(kMany).behind(), Error);
}

}  // namespace
}  // namespace bloomery
