#include <gtest/gtest.h>

#include <sstream>

#include "apps/common/command_case.h"
#include "harness/shared_data.h"

namespace bloomery {
namespace {

constexpr char kJson[] =
    R"({"added_tokens": [{"id": 4, "content": "<s>", "special": true}],
        "post_processor": {"type": "BertProcessing", "cls": ["<s>", 4], "sep": ["b", 1]},
        "decoder": {"type": "Fuse"},
        "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2, "é": 3}, "merges": ["a b"]}})";

class TokenizerCommand : public testing::Test {
 protected:
  // Runs `bloomery tokenizer` on an input file; several workers, so that lines are shared out.
  Outcome run(const std::string& mode, const std::string& input, Arguments further) {
    Arguments arguments = {"tokenizer", mode, "--tokenizer", tokenizer_,
                           "--workers", "3",  "--input",     folder_.file("input", input).string()};
    arguments.insert(arguments.end(), further.begin(), further.end());
    return run_command(arguments);
  }

  TemporaryFolder folder_;
  std::string tokenizer_ = folder_.file("t.json", kJson).string();
};

TEST_F(TokenizerCommand, EncodesLinesOfJson) {
  const std::string lines = "\"ab\\u00e9\"\n{\"text\": \"ba\", \"x\": 1}\r\n\"\"\n\"<s>\"";
  const Outcome outcome = run("encode", lines, {"--jsonl"});
  EXPECT_EQ(outcome.code, 0) << outcome.errors;
  EXPECT_EQ(outcome.out, "[2, 3]\n[1, 0]\n[]\n[4]\n");
  EXPECT_EQ(run("encode", "\"ab\"\n", {"--jsonl", "--add-special-tokens"}).out, "[4, 2, 1]\n");
  EXPECT_EQ(run("encode", "\"a<s>\"\n", {"--jsonl", "--no-parse-special"}).out, "[0]\n");
  EXPECT_EQ(run("encode", "{\"body\": \"b\"}\n", {"--jsonl", "--json-key", "body"}).out, "[1]\n");
}

TEST_F(TokenizerCommand, ABadLineIsNamedAfterTheAnswersBeforeIt) {
  const std::pair<const char*, const char*> bad[] = {
      {"{\"txt\": \"a\"}", "the object has no key 'text'"},
      {"\"a", "not valid JSON"},
      {"", "not valid JSON"},
      {"17", "the document is not a text but number"},
      {"\"\\ud800\"", "not valid JSON"},
      {"\"\xFF\"", "not valid JSON"}};
  for (const auto& [line, problem] : bad) {
    const Outcome outcome =
        run("encode", std::string("\"a\"\n\"b\"\n\"ab\"\n") + line + "\n\"a\"\n", {"--jsonl"});
    EXPECT_EQ(outcome.code, 2);
    EXPECT_EQ(outcome.out, "[0]\n[1]\n[2]\n") << line;
    EXPECT_NE(outcome.errors.find("line 4: "), std::string::npos) << outcome.errors;
    EXPECT_NE(outcome.errors.find(problem), std::string::npos) << outcome.errors;
  }
}

TEST_F(TokenizerCommand, DecodesWhatItEncoded) {
  EXPECT_EQ(run("decode", "[2, 3, 4]\n[]\n", {"--jsonl"}).out, "\"ab\u00E9<s>\"\n\"\"\n");
  EXPECT_EQ(run("encode", "ab\u00E9", {}).out, "2 3\n");
  EXPECT_EQ(run("decode", " 2 3\n0", {}).out, "ab\u00E9a");
  const Outcome unknown = run("decode", "[0]\n[5]\n", {"--jsonl"});
  EXPECT_EQ(unknown.code, 2);
  EXPECT_EQ(unknown.out, "\"a\"\n");
  EXPECT_NE(unknown.errors.find("line 2: token id 5 is not in the vocabulary"), std::string::npos);
  EXPECT_EQ(run("decode", "[-1]\n", {"--jsonl"}).code, 2);
  EXPECT_EQ(run("decode", "1 x", {}).code, 2);
}

TEST_F(TokenizerCommand, TextMustBeUtf8AndFilesMustExist) {
  const Outcome bytes = run("encode", "a\xFF", {});
  EXPECT_EQ(bytes.code, 2);
  EXPECT_NE(bytes.errors.find("byte 1 begins no character"), std::string::npos) << bytes.errors;
  std::ostringstream out, errors;
  EXPECT_EQ(run_bloomery({"tokenizer", "encode", "--tokenizer", tokenizer_, "--input", "/no/file"},
                         out, errors),
            2);
  EXPECT_NE(errors.str().find("/no/file"), std::string::npos);
}

TEST_F(TokenizerCommand, HelpAndInfo) {
  std::ostringstream out, errors;
  EXPECT_EQ(run_bloomery({"tokenizer", "encode", "--help"}, out, errors), 0);
  EXPECT_NE(out.str().find("--no-parse-special"), std::string::npos);
  std::ostringstream info;
  EXPECT_EQ(run_bloomery({"tokenizer", "info", "--tokenizer", tokenizer_}, info, errors), 0);
  EXPECT_EQ(info.str(), "vocabulary: 5\nbos: 4 <s>\n");
}

}  // namespace
}  // namespace bloomery
