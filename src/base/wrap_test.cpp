#include "base/wrap.h"

#include <gtest/gtest.h>

namespace bloomery {
namespace {

TEST(Wrap, WordsGoOnBelowTheIndent) {
  EXPECT_EQ(wrapped("  --lr", "peak learning rate", 16, 4), "  --lr peak\n    learning\n    rate");
  EXPECT_EQ(wrapped("  --lr  ", "peak", 16, 8), "  --lr  peak");
  EXPECT_EQ(wrapped("", "", 16, 4), "");
}

TEST(Wrap, AWordWiderThanALineHasALineOfItsOwn) {
  EXPECT_EQ(wrapped("a", "https://example.org/long b", 10, 2),
            "a\n  https://example.org/long\n  b");
}

TEST(Wrap, ColumnsAreCountedNotBytes) {
  EXPECT_EQ(wrapped("", "\xC3\xA9\xC3\xA9\xC3\xA9 \xC3\xA9\xC3\xA9", 6, 0),
            "\xC3\xA9\xC3\xA9\xC3\xA9 \xC3\xA9\xC3\xA9");
  EXPECT_EQ(wrapped("", "\xE6\xBC\xA2\xE5\xAD\x97 ab", 6, 0), "\xE6\xBC\xA2\xE5\xAD\x97\nab");
}

TEST(Wrap, LinesKeepTheirIndentAndTheirOrder) {
  EXPECT_EQ(
      wrapped_lines("usage: bloomery chat --load DIR\n\nshort\n  a list entry of words\n", 20),
      "usage: bloomery chat\n         --load DIR\n\nshort\n  a list entry of\n    words\n");
  EXPECT_EQ(wrapped_lines("fits", 20), "fits");
}

}  // namespace
}  // namespace bloomery
