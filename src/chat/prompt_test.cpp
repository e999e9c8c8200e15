#include "chat/prompt.h"

#include <gtest/gtest.h>

#include <functional>

#include "base/error.h"
#include "tokenizer/load.h"

namespace bloomery {
namespace {

std::shared_ptr<const Tokenizer> null_tokenizer() {
  return load_tokenizer({.type = "NullTokenizer", .vocab_size = 10});
}

// The text with what is to be learnt in brackets.
std::string bracketed(const jinja::Text& text) {
  std::string shown;
  bool inside = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool generated = (text.mark(i) & jinja::kGenerated) != 0;
    if (generated != inside) shown += generated ? '[' : ']';
    inside = generated;
    shown += text.bytes()[i];
  }
  return inside ? shown + "]" : shown;
}

constexpr char kPlainChat[] =
    "{% for m in messages %}<{{ m.role }}>{{ m.content }};{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}";

std::string shown(const std::string& source, bool chat, std::string_view json,
                  RecordFormat format = RecordFormat::automatic) {
  return bracketed(Prompt(source, "t", chat, *null_tokenizer()).render(read_record(json, format)));
}

TEST(Prompt, FindsAnswersOfChatTemplatesWithoutMarks) {
  EXPECT_EQ(
      shown(
          kPlainChat, true,
          R"({"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}, {"role": "user", "content": "c"}, {"role": "assistant", "content": "d"}]})"),
      "<user>a;<assistant>[b;]<user>c;<assistant>[d;]");
  const std::string marked =
      "{% for m in messages %}{% if m.role == 'assistant' %}{% generation %}{{ m.content }}{% "
      "endgeneration %}.{% else %}{{ m.content }}{% endif %}{% endfor %}";
  EXPECT_EQ(shown(marked, true, R"({"prompt": "q", "completion": "a"})"), "q[a].");
  EXPECT_THROW(shown("{{ messages | length }}{{ messages[-1].content }}", true,
                     R"({"prompt": "q", "completion": "a"})"),
               UnmaskableRecord);
  const std::string alternating =
      "{% if messages | length < 2 %}{{ raise_exception('too short') }}{% endif %}{% for m in "
      "messages %}{{ m.content }}{% endfor %}";
  EXPECT_THROW(shown(alternating, true, R"({"prompt": "q", "completion": "a"})"), UnmaskableRecord);
  const Prompt prompt(alternating, "t", true, *null_tokenizer());
  const Record record =
      read_record(R"({"prompt": "q", "completion": "a"})", RecordFormat::automatic);
  EXPECT_EQ(prompt.render(record, /*with_answers=*/false).bytes(), "qa");
}

TEST(Prompt, BuiltInChatTemplateShowsItsAnswers) {
  EXPECT_EQ(shown(kChatTemplate, true, R"({"system": "s", "instruction": "q", "output": "a"})"),
            "### System:\ns\n\n### User:\nq\n\n### Assistant:\n[a]\n\n");
  const Prompt prompt(kChatTemplate, "t", true, *null_tokenizer());
  EXPECT_EQ(prompt.ask(R"([{"role": "user", "content": "q"}])", "null").bytes(),
            "### User:\nq\n\n### Assistant:\n");
}

TEST(Prompt, RecordsAreNestedOnlySoDeeply) {
  const std::string deep = R"({"messages": [{"role": "user", "content": )" +
                           std::string(100000, '[') + std::string(100000, ']') + "}]}";
  for (const auto& read : {std::function([&] { read_record(deep, RecordFormat::automatic); }),
                           std::function([&] { read_preference(deep); }), std::function([&] {
                             read_record(R"({"messages": [], "tools": ")" +
                                             std::string(100000, '[') + std::string(100000, ']') +
                                             "\"}",
                                         RecordFormat::automatic);
                           })}) {
    try {
      read();
      FAIL();
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("nested more than 32 levels deep"),
                std::string::npos)
          << error.what();
    }
  }
  EXPECT_NO_THROW(read_record(R"({"a": "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[ \" {{{"})",
                              RecordFormat::automatic))
      << "brackets in a text";
}

TEST(Prompt, ReadsEveryShapeOfRecord) {
  const std::string turns = "<user>q\nc;<assistant>[a;]";
  EXPECT_EQ(shown(kPlainChat, true, R"({"instruction": "q", "input": "c", "output": "a"})"), turns);
  EXPECT_EQ(shown(kPlainChat, true,
                  R"({"instruction": "q", "context": "c", "response": "a", "category": "x"})"),
            turns);
  EXPECT_EQ(
      shown(
          kPlainChat, true,
          R"({"conversations": [{"from": "human", "value": "q\nc"}, {"from": "gpt", "value": "a"}]})"),
      turns);
  EXPECT_EQ(
      shown(
          kPlainChat, true,
          R"({"instruction": "q", "input": null, "output": "a", "system": "s", "history": [["x", "y"]]})"),
      "<system>s;<user>x;<assistant>[y;]<user>q;<assistant>[a;]");
  EXPECT_THROW(shown(kPlainChat, true, R"({"question": "q"})"), Error);
  EXPECT_THROW(shown(kPlainChat, true, R"({"conversations": [{"from": "alien", "value": "q"}]})"),
               Error);
  EXPECT_THROW(shown(kPlainChat, true, R"({"messages": [{"content": "q"}]})"), Error);
  EXPECT_THROW(read_record("[1]", RecordFormat::automatic), Error);
}

TEST(Prompt, FillsColumnsIntoATemplate) {
  EXPECT_EQ(shown("Q: {{ question }}\nA:{% generation %} {{ answer }}{% endgeneration %}", false,
                  R"({"question": "1+1?", "answer": "2"})"),
            "Q: 1+1?\nA:[ 2]");
  EXPECT_NE(shown(kAlpacaTemplate, false, R"({"instruction": "q", "input": "c", "output": "a"})")
                .find("### Input:\nc\n\n### Response:[a]"),
            std::string::npos);
  EXPECT_EQ(shown(kAlpacaTemplate, false, R"({"instruction": "q", "input": "", "output": "a"})")
                .find("Input"),
            std::string::npos);
}

}  // namespace
}  // namespace bloomery
