#include "config/json_fields.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"

namespace bloomery {
namespace {

std::string message(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(JsonFields, ReadsByNameAndType) {
  const JsonFields fields(
      R"({"b":true,"i":-3,"x":0.1,"t":"a","n":null,"l":[1,2],"o":{"deep":[{"k":7}]}})", "here");
  EXPECT_TRUE(fields.get<bool>("b"));
  EXPECT_EQ(fields.get<std::int64_t>("i"), -3);
  EXPECT_EQ(fields.get<double>("i"), -3.0);
  EXPECT_EQ(fields.get<double>("x"), 0.1);
  EXPECT_EQ(fields.get<std::string>("t"), "a");
  EXPECT_EQ(fields.get<std::vector<std::int64_t>>("l"), (std::vector<std::int64_t>{1, 2}));
  const auto inner = fields.get<JsonFields>("o").get<std::vector<JsonFields>>("deep");
  EXPECT_EQ(inner.at(0).get<int>("k"), 7);
  EXPECT_FALSE(fields.find<double>("n").has_value());
  EXPECT_FALSE(fields.find<double>("missing").has_value());
  EXPECT_EQ(fields.find<std::string>("t"), "a");
  EXPECT_EQ(fields.names(), (std::vector<std::string>{"b", "i", "x", "t", "n", "l", "o"}));
  EXPECT_EQ(fields.kind("n"), JsonFields::Kind::null);
  EXPECT_EQ(fields.kind("missing"), JsonFields::Kind::absent);
}

TEST(JsonFields, MessagesNamePlaceAndMember) {
  const JsonFields fields(R"({"i":3000000000,"x":1.5,"u":18446744073709551615,"o":{"l":[1,"a"]}})",
                          "run/file.json");
  EXPECT_EQ(message([&] { fields.get<int>("gone"); }),
            "run/file.json: gone is missing; it must be a whole number");
  EXPECT_EQ(message([&] { fields.get<int>("i"); }),
            "run/file.json: i is wrong; it must be a whole number from -2147483648 to 2147483647");
  EXPECT_EQ(message([&] { fields.get<std::int64_t>("u"); }),
            "run/file.json: u is wrong; it must be a whole number from -9223372036854775808 to "
            "9223372036854775807");
  EXPECT_EQ(message([&] { fields.get<std::int64_t>("x"); }),
            "run/file.json: x is wrong; it must be a whole number");
  EXPECT_EQ(message([&] { fields.get<JsonFields>("o").get<std::vector<std::int64_t>>("l"); }),
            "run/file.json: o: l[1] is wrong; it must be a whole number");
  enum class Colour { red, blue } colour = Colour::red;
  EXPECT_EQ(message([&] { JsonFields(R"({"c":2})", "here").read_enum("c", colour, Colour::blue); }),
            "here: c is 2, not 0 to 1");
}

TEST(JsonFields, ReadsWhatHasLimitsAndListsOfTwo) {
  const JsonFields fields(R"({"n":7,"pair":["a",5],"three":["a",5,6],"texts":[["x"],[]]})", "here");
  EXPECT_EQ(fields.whole("n", 0, 7), 7);
  EXPECT_EQ(message([&] { fields.whole("n", 8, 9); }),
            "here: n is wrong; it must be a whole number from 8 to 9");
  using Pair = std::pair<std::string, std::int64_t>;
  EXPECT_EQ(fields.get<Pair>("pair"), Pair("a", 5));
  EXPECT_EQ(message([&] { fields.get<Pair>("three"); }),
            "here: three is wrong; it must be a list of two");
  EXPECT_EQ(fields.get<std::vector<std::vector<std::string>>>("texts"),
            (std::vector<std::vector<std::string>>{{"x"}, {}}));
  EXPECT_EQ(message([&] { fields.named("there").fail("gone", "good"); }),
            "there: gone is missing; it must be good");
}

TEST(JsonFields, AllMembersAndTheirText) {
  const JsonFields fields(R"({"z":{"k":"v"},"a":{"n":-1}})", "here");
  const auto members = fields.members<JsonFields>();
  ASSERT_EQ(members.size(), 2u);
  EXPECT_EQ(members[0].first, "z");
  EXPECT_EQ(members[0].second.members<std::string>(),
            (std::vector<std::pair<std::string, std::string>>{{"k", "v"}}));
  EXPECT_EQ(fields.json(), R"({"z":{"k":"v"},"a":{"n":-1}})");
  EXPECT_EQ(fields.json("a"), R"({"n":-1})");
  EXPECT_EQ(message([&] { members[1].second.members<std::string>(); }),
            "here: a: n is wrong; it must be a text");
  EXPECT_EQ(message([&] { members[1].second.count("n"); }), "here: a: n is -1, less than 0");
  EXPECT_EQ(message([&] {
              fields.refuse_others({"z", "b"});
            }),
            "here: has a, which is unknown here; a newer program wrote it");
}

TEST(JsonFields, RefusesWhatIsNoObject) {
  for (const std::string& text : {std::string(""), std::string("[]"), std::string("{"),
                                  std::string("{} {}"), "{\"a\":" + std::string(100000, '[')}) {
    EXPECT_TRUE(message([&] { JsonFields(text, "here"); }).starts_with("here: ")) << text;
  }
}

}  // namespace
}  // namespace bloomery
