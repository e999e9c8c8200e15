#include "tokenizer/utf8.h"

#include <gtest/gtest.h>

namespace bloomery {
namespace {

TEST(Utf8, EveryCharacterComesBack) {
  for (char32_t code = 0; code <= 0x10FFFF; ++code) {
    if (code >= 0xD800 && code <= 0xDFFF) continue;
    std::string text;
    append_utf8(text, code);
    ASSERT_TRUE(is_utf8(text)) << std::hex << static_cast<std::uint32_t>(code);
    const Utf8Char back = utf8_at(text, 0);
    ASSERT_EQ(back.code, code);
    ASSERT_EQ(back.length, static_cast<int>(text.size()));
  }
}

TEST(Utf8, InvalidPartsAreReplacedAsPythonDoes) {
  const std::pair<std::string, std::string> cases[] = {
      {"abc", "abc"},
      {"a\xC3", "a\uFFFD"},
      {"\xC0\x80", "\uFFFD\uFFFD"},            // overlong
      {"\xED\xA0\x80", "\uFFFD\uFFFD\uFFFD"},  // a surrogate
      {"\xF0\x9F\x98z", "\uFFFDz"},            // cut short: one part
      {"\xF4\x90\x80\x80", "\uFFFD\uFFFD\uFFFD\uFFFD"},
      {"\x80\xE2\x82\xAC", "\uFFFD\u20AC"},
      {"12345678\xFF"
       "12345678",
       "12345678\uFFFD12345678"},
  };
  for (const auto& [text, repaired] : cases) {
    EXPECT_EQ(repair_utf8(text), repaired);
    EXPECT_EQ(is_utf8(text), text == repaired);
  }
}

}  // namespace
}  // namespace bloomery
