#include "chat/preference_record.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace bloomery {
namespace {

using Json = nlohmann::ordered_json;

// "user: a | assistant: b".
std::string said(const std::string& messages) {
  std::string text;
  for (const Json& message : Json::parse(messages)) {
    text += (text.empty() ? "" : " | ") + message["role"].get<std::string>() + ": " +
            message["content"].get<std::string>();
  }
  return text;
}

void expect_pair(const std::string& json, const std::string& prompt, const std::string& chosen,
                 const std::string& rejected) {
  SCOPED_TRACE(json);
  const PreferenceRecord pair = read_preference(json);
  EXPECT_EQ(said(pair.prompt), prompt);
  EXPECT_EQ(said(pair.chosen.messages), prompt + " | " + chosen);
  EXPECT_EQ(said(pair.rejected.messages), prompt + " | " + rejected);
}

TEST(PreferenceRecord, HasTheShapesOfTrl) {
  expect_pair(R"({"prompt": "Sky?", "chosen": "Blue.", "rejected": "Green."})", "user: Sky?",
              "assistant: Blue.", "assistant: Green.");
  expect_pair(R"({"question": "Sky?", "system": "Be short.", "chosen": "Blue.", "rejected": "?"})",
              "system: Be short. | user: Sky?", "assistant: Blue.", "assistant: ?");
  const std::string lists =
      R"("chosen": [{"role": "assistant", "content": "B"}], "rejected": [{"role": "assistant", "content": "G"}]})";
  expect_pair(R"({"prompt": [{"role": "user", "content": "Sky?"}], )" + lists, "user: Sky?",
              "assistant: B", "assistant: G");
  expect_pair(R"({"prompt": "Sky?", )" + lists, "user: Sky?", "assistant: B", "assistant: G");
  // Whole conversations, whatever the prompt says.
  const std::string whole =
      R"("chosen": [{"role": "user", "content": "Sky?"}, {"role": "assistant", "content": "B"}],
         "rejected": [{"role": "user", "content": "Sky?"}, {"role": "assistant", "content": "G"}]})";
  expect_pair("{" + whole, "user: Sky?", "assistant: B", "assistant: G");
  expect_pair(R"({"prompt": "Sky?", )" + whole, "user: Sky?", "assistant: B", "assistant: G");
}

TEST(PreferenceRecord, ReadsTranscripts) {
  const std::string before = R"("\n\nHuman: Hi\n\nAssistant: Hello.\n\nHuman: Sky?\n\nAssistant:)";
  const char* const prompt = "user: Hi | assistant: Hello. | user: Sky?";
  const std::string record =
      R"({"chosen": )" + before + R"( Blue.", "rejected": )" + before + R"( Black."})";
  expect_pair(record, prompt, "assistant: Blue.", "assistant: Black.");
  const Json columns = Json::parse(read_preference(record).rejected.columns);
  EXPECT_EQ(columns["prompt"], "\n\nHuman: Hi\n\nAssistant: Hello.\n\nHuman: Sky?\n\nAssistant:");
  EXPECT_EQ(columns["completion"], " Black.");
  expect_pair(R"({"prompt": )" + before + R"(", "chosen": "Blue.", "rejected": "Black."})", prompt,
              "assistant: Blue.", "assistant: Black.");
}

TEST(PreferenceRecord, TakesWhatTextsHaveInCommonForThePrompt) {
  const PreferenceRecord pair =
      read_preference(R"({"chosen": "The sky is blue.", "rejected": "The sky is green."})");
  const Json chosen = Json::parse(pair.chosen.columns),
             rejected = Json::parse(pair.rejected.columns);
  EXPECT_EQ(chosen["prompt"], "The sky is");
  EXPECT_EQ(chosen["completion"], " blue.");
  EXPECT_EQ(rejected["completion"], " green.");
}

TEST(PreferenceRecord, SaysWhatIsMissing) {
  for (const auto& [json, what] : {
           std::pair{"[]", "not a JSON object"},
           std::pair{"{", "not valid JSON"},
           std::pair{R"({"prompt": "a", "chosen": "b"})", "no 'rejected'"},
           std::pair{R"({"prompt": "a", "chosen": "b", "rejected": []})", "both"},
           std::pair{R"({"prompt": 1, "chosen": "b", "rejected": "c"})", "neither a text"},
           std::pair{R"({"chosen": [{"role": "user"}], "rejected": [{"role": "user"}]})",
                     "no prompt in common"},
           std::pair{R"({"prompt": "a", "chosen": [1], "rejected": [2]})", "has no 'role'"},
       }) {
    try {
      read_preference(json);
      ADD_FAILURE() << json;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(what), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace bloomery
