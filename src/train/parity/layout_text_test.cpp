#include "train/parity/layout_text.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace bloomery {
namespace {

TEST(LayoutText, IsReadAsItIsWritten) {
  for (const char* text : {"1", "tp2", "tp2+sp", "tp2+sp+ul2+pp4+zb", "pp2+v2+dp2+z3", "dp4+z1",
                           "pp4+gpipe", "ul2+dp2+z2", "tp2+cp2+pp2", "ul2+cp4+z3"}) {
    EXPECT_EQ(to_text(parse_layout(text)), text);
  }
  EXPECT_EQ(to_text(parse_layout("dp2z1tp4.sp-pp2zb")), "tp4+sp+pp2+zb+dp2+z1");
  const std::vector<Layout> several = parse_layouts("tp2, dp2z3,pp2");
  ASSERT_EQ(several.size(), 3u);
  EXPECT_EQ(to_text(several[1]), "dp2+z3");
}

TEST(LayoutText, RefusesWhatMeansNothing) {
  for (const char* text : {"tp", "tp0", "z4", "xx2", "2", "tp2zz", "sp2"}) {
    EXPECT_THROW(parse_layout(text), Error) << text;
  }
  EXPECT_THROW(parse_layouts(" , "), Error);
}

}  // namespace
}  // namespace bloomery
