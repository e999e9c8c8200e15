#include "text/input/json_line.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "base/json_scan.h"

namespace bloomery {
namespace {

// The text of the key, or the fault in brackets.
std::string parsed(std::string_view line) {
  JsonLineParser parser({"text"});
  return parser.parse(line) ? std::string(parser.text(0)) : "<" + parser.fault() + ">";
}

TEST(JsonLine, TextsWithEscapes) {
  EXPECT_EQ(parsed(R"({"text":"plain"})"), "plain");
  EXPECT_EQ(parsed(" {\t\"a\" : [1, {\"text\": 2}] , \"text\" : \"x\" } \r"), "x");
  EXPECT_EQ(parsed(R"({"text":"\"\\\/\b\f\n\r\t"})"), "\"\\/\b\f\n\r\t");
  EXPECT_EQ(parsed(R"({"text":"\u0041\u00e9\u4E2D\ud83d\uDE00!"})"), "Aé中😀!");
  EXPECT_EQ(parsed(R"({"text":"a\u0000b"})"), std::string("a\0b", 3));
  EXPECT_EQ(parsed(R"({"te\u0078t":"key"})"), "key");
  EXPECT_EQ(parsed(R"({"text":""})"), "");
  EXPECT_EQ(parsed(R"({"text":"first","text":"last"})"), "last");
  EXPECT_EQ(parsed(R"({"text":1,"text":"last\n"})"), "last\n");
}

TEST(JsonLine, WhatPythonTakesToo) {
  EXPECT_EQ(parsed(R"({"a":NaN,"b":[Infinity,-Infinity],"text":"x"})"), "x");
}

TEST(JsonLine, Faults) {
  EXPECT_EQ(parsed(R"({"other":"x"})"), "<no key 'text'>");
  EXPECT_EQ(parsed(R"({"text":null})"), "<no string under the key 'text'>");
  EXPECT_EQ(parsed(R"({"text":"x","text":["x"]})"), "<no string under the key 'text'>");
  EXPECT_EQ(parsed(R"(["text"])"), "<invalid JSON: not a JSON object (byte 0 of the line)>");
  EXPECT_EQ(parsed(R"({"text":"x"} {})"),
            "<invalid JSON: something follows the JSON object (byte 13 of the line)>");
  EXPECT_EQ(parsed("{\"text\":\"\xC3\"}"), "<invalid UTF-8 (byte 9 of the line)>");
  EXPECT_EQ(parsed("{\"text\":\"\xED\xA0\x80\"}"), "<invalid UTF-8 (byte 9 of the line)>");
  for (const char* bad : {"",
                          "{",
                          "{}x",
                          R"({"text":"x")",
                          R"({"text":"x)",
                          R"({"text":"x",})",
                          R"({text:"x"})",
                          R"({"text" "x"})",
                          R"({"text":'x'})",
                          R"({"text":"\ud800"})",
                          R"({"text":"\udc00"})",
                          R"({"text":"\ud800\u0041"})",
                          R"({"text":"\ud800x"})",
                          R"({"text":"\u12"})",
                          R"({"text":"\u12g4"})",
                          R"({"text":"\x"})",
                          "{\"text\":\"a\tb\"}",
                          "{\"text\":\"a\nb\"}",
                          R"({"b":"\udfff","text":"x"})",
                          R"({"a":01,"text":"x"})",
                          R"({"a":1.,"text":"x"})",
                          R"({"a":.5,"text":"x"})",
                          R"({"a":1e,"text":"x"})",
                          R"({"a":+1,"text":"x"})",
                          R"({"a":-,"text":"x"})",
                          R"({"a":-NaN,"text":"x"})",
                          R"({"a":tru,"text":"x"})",
                          R"({"a":[1,],"text":"x"})",
                          R"({"a":[1 2],"text":"x"})",
                          R"({"a":[1},"text":"x"})",
                          R"({"a":{"b"},"text":"x"})",
                          R"({"a":{"b":1,},"text":"x"})",
                          R"({"a":,"text":"x"})"}) {
    EXPECT_TRUE(parsed(bad).starts_with('<')) << bad;
  }
}

TEST(JsonLine, DepthIsBounded) {
  const auto nested = [](std::size_t depth) {
    return R"({"text":"x","a":)" + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  EXPECT_EQ(parsed(nested(kMaxJsonDepth - 1)), "x");
  const std::string fault = "<invalid JSON: nested deeper than 1024 (byte 1039 of the line)>";
  EXPECT_EQ(parsed(nested(kMaxJsonDepth)), fault);
  EXPECT_EQ(parsed(nested(1000000)), fault);
}

TEST(JsonLine, SeveralKeys) {
  JsonLineParser parser({"title", "text"});
  ASSERT_TRUE(parser.parse(R"({"text":"a\nb","title":"c\td"})"));
  EXPECT_EQ(parser.text(0), "c\td");
  EXPECT_EQ(parser.text(1), "a\nb");
  EXPECT_FALSE(parser.parse(R"({"text":"a"})"));
}

TEST(JsonScan, EndOfPlainAtEveryPlace) {
  for (const char stop : {'"', '\\', '\n', '\x1F', '\0'}) {
    for (std::size_t at = 0; at < 40; ++at) {
      std::string text(40, '\x7F');
      text[at] = stop;
      text[39] = stop;
      EXPECT_EQ(end_of_plain(text, 0), at);
      EXPECT_EQ(end_of_plain(text, at + 1), at == 39 ? 40 : 39);
    }
  }
  EXPECT_EQ(end_of_plain("\xC3\xA9\xFF\x80\xA2\xDC !#[]~", 0), 12);
}

// Lines made from a grammar and then damaged; nlohmann decides what they are.
class RandomLines {
 public:
  explicit RandomLines(unsigned seed) : random_(seed) {}

  std::string next() {
    std::string line = "{\"text\":" + string() + ",\"a\":" + value(0) + "}";
    for (int damage = pick(3); damage > 0; --damage) {
      const std::size_t at = static_cast<std::size_t>(pick(static_cast<int>(line.size())));
      static const std::string kBytes = "\"\\{}[],:019.eE+-tn u\x80\xC3\x01";
      if (pick(2) == 0) {
        line.erase(at, 1);
      } else {
        line.insert(at, 1, kBytes[static_cast<std::size_t>(pick(static_cast<int>(kBytes.size())))]);
      }
    }
    return line;
  }

 private:
  int pick(int below) { return static_cast<int>(random_() % static_cast<unsigned>(below)); }
  std::string string() {
    static const std::vector<std::string> kParts = {"a",     "é",    "中",      "😀",
                                                    "\\n",   "\\\"", "\\u00e9", "\\ud83d\\ude00",
                                                    "word ", "\\\\", "\\u0000"};
    std::string text = "\"";
    for (int i = pick(12); i > 0; --i) {
      text += kParts[static_cast<std::size_t>(pick(static_cast<int>(kParts.size())))];
    }
    return text + "\"";
  }
  std::string value(int depth) {
    switch (pick(depth < 4 ? 7 : 5)) {
      case 0:
        return "-12.5e+3";
      case 1:
        return "true";
      case 2:
        return "null";
      case 3:
        return "0";
      case 4:
        return string();
      case 5:
        return "[" + value(depth + 1) + ", " + value(depth + 1) + "]";
      default:
        return "{" + string() + " :" + value(depth + 1) + "}";
    }
  }
  std::mt19937 random_;
};

TEST(JsonLine, AgreesWithNlohmann) {
  RandomLines lines(7);
  JsonLineParser parser({"text"});
  int good = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::string line = lines.next();
    std::optional<std::string> expected;
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (json.is_object() && json.contains("text") && json["text"].is_string()) {
      expected = json["text"].get<std::string>();
    }
    ASSERT_EQ(parser.parse(line), expected.has_value()) << line;
    if (expected) {
      ++good;
      ASSERT_EQ(parser.text(0), *expected) << line;
    }
  }
  EXPECT_GT(good, 5000);
}

}  // namespace
}  // namespace bloomery
