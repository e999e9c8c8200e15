#include "base/number_text.h"

#include <gtest/gtest.h>

namespace bloomery {
namespace {

TEST(NumberText, AsPeopleReadThem) {
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(-1361845), "-1,361,845");
  EXPECT_EQ(grouped(-123), "-123");
  EXPECT_EQ(counted(1, "document"), "1 document");
  EXPECT_EQ(counted(0, "document"), "0 documents");
  EXPECT_EQ(counted(2000, "document"), "2,000 documents");
  EXPECT_EQ(clock_text(75), "1:15");
  EXPECT_EQ(clock_text(3675), "1:01:15");
  EXPECT_EQ(size_text(999), "999 B");
  EXPECT_EQ(size_text(1536000), "1.5 MB");
  EXPECT_EQ(gib_text(3ull << 29), "1.5 GiB");
  EXPECT_EQ(size_text(123456789), "123 MB");
}

}  // namespace
}  // namespace bloomery
