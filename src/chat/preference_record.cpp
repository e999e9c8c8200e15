#include "chat/preference_record.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/json_scan.h"

namespace bloomery {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kHuman = "\n\nHuman:", kAssistant = "\n\nAssistant:";

Json turn(const char* role, std::string_view content) {
  return {{"role", role}, {"content", content}};
}

// What stands under `key`, or null.
Json column(const Json& record, const char* key) {
  return record.contains(key) ? record[key] : Json();
}

Json message_list(const Json& list, const char* key) {
  for (const Json& item : list) {
    check(item.is_object() && item.contains("role") && item["role"].is_string(), "an item of '",
          key, "' has no 'role'");
  }
  return list;
}

// The turns of a transcript; none: it is another text. An empty last turn is left out.
std::optional<Json> transcript(const std::string& text) {
  if (!text.starts_with(kHuman)) return std::nullopt;
  Json messages = Json::array();
  for (std::size_t at = 0; at < text.size();) {
    const bool human = text.compare(at, kHuman.size(), kHuman) == 0;
    std::size_t begin = at + (human ? kHuman : kAssistant).size();
    at = std::min({text.find(kHuman, begin), text.find(kAssistant, begin), text.size()});
    begin += begin < at && text[begin] == ' ' ? 1 : 0;
    if (begin < at || at < text.size()) {
      messages.push_back(
          turn(human ? "user" : "assistant", std::string_view(text).substr(begin, at - begin)));
    }
  }
  return messages;
}

// TRL's rule for texts without a prompt: what they begin with alike, without a space at its end.
std::size_t common_text(const std::string& a, const std::string& b) {
  const auto [end, unused] = std::ranges::mismatch(a, b);
  auto count = static_cast<std::size_t>(end - a.begin());
  return count - (count > 0 && a[count - 1] == ' ' ? 1 : 0);
}

// At least the last message of each is no part of the prompt.
Json common_messages(const Json& a, const Json& b) {
  Json common = Json::array();
  for (std::size_t i = 0; i + 1 < std::min(a.size(), b.size()) && a[i] == b[i]; ++i) {
    common.push_back(a[i]);
  }
  return common;
}

Json joined(const Json& first, const Json& second) {
  Json all = first;
  all.insert(all.end(), second.begin(), second.end());
  return all;
}

Json prompt_messages(const Json& record, const Json& prompt) {
  if (prompt.is_array()) return message_list(prompt, "prompt");
  const std::string text = prompt.get<std::string>();
  if (const auto turns = transcript(text)) return *turns;
  Json messages = Json::array();
  if (const Json system = column(record, "system"); system.is_string() && system != "") {
    messages.push_back(turn("system", system.get<std::string>()));
  }
  messages.push_back(turn("user", text));
  return messages;
}

struct Conversations {
  Json prompt, chosen, rejected;  // the latter two whole
};

// Of lists: they may begin with the prompt, whether it is given apart or not.
Conversations of_lists(const Json& record, const Json& prompt) {
  const Json chosen = message_list(record["chosen"], "chosen");
  const Json rejected = message_list(record["rejected"], "rejected");
  const Json common = common_messages(chosen, rejected);
  if (!common.empty() || prompt.is_null()) return {common, chosen, rejected};
  const Json before = prompt_messages(record, prompt);
  return {before, joined(before, chosen), joined(before, rejected)};
}

Conversations of_texts(const Json& record, Json& prompt, std::string& chosen,
                       std::string& rejected) {
  if (prompt.is_null()) {
    const auto first = transcript(chosen), second = transcript(rejected);
    std::size_t common = common_text(chosen, rejected);
    if (first && second) {  // a prompt ends where an answer begins
      const std::size_t answer = std::string_view(chosen).substr(0, common).rfind(kAssistant);
      common = answer == std::string::npos ? 0 : answer + kAssistant.size();
    }
    check(common > 0, "'chosen' and 'rejected' have no prompt in common");
    prompt = chosen.substr(0, common);
    chosen.erase(0, common);
    rejected.erase(0, common);
    if (first && second) return {common_messages(*first, *second), *first, *second};
  }
  const Json before = prompt_messages(record, prompt);
  const auto answered = [&](const std::string& answer) {
    return joined(before, Json::array({turn("assistant", answer)}));
  };
  return {before, answered(chosen), answered(rejected)};
}

Record record_of(const Json& columns, const Json& prompt, const std::string* completion,
                 const Json& messages) {
  Json all = columns;
  if (!prompt.is_null()) all["prompt"] = prompt;
  if (completion != nullptr) all["completion"] = *completion;
  return {
      .columns = all.dump(), .messages = messages.dump(), .tools = column(columns, "tools").dump()};
}

}  // namespace

PreferenceRecord read_preference(std::string_view json) {
  check_json_depth(json);
  Json record;
  try {
    record = Json::parse(json);
  } catch (const Json::exception& error) {
    throw Error(concat("not valid JSON: ", error.what()));
  }
  check(record.is_object(), "not a JSON object");
  for (const char* key : {"chosen", "rejected"}) {
    check(record.contains(key), "the record has no '", key,
          "': --dpo reads pairs of answers, 'chosen' and 'rejected', and a 'prompt'");
  }
  const bool texts = record["chosen"].is_string() && record["rejected"].is_string();
  check(texts || (record["chosen"].is_array() && record["rejected"].is_array()),
        "'chosen' and 'rejected' must both be texts, or both lists of messages");
  Json prompt = column(record, record.contains("prompt") ? "prompt" : "question");
  check(prompt.is_null() || prompt.is_string() || prompt.is_array(),
        "'prompt' is neither a text nor a list of messages");
  std::string chosen = texts ? record["chosen"].get<std::string>() : "";
  std::string rejected = texts ? record["rejected"].get<std::string>() : "";
  const Conversations all =
      texts ? of_texts(record, prompt, chosen, rejected) : of_lists(record, prompt);
  check(!all.prompt.empty(), "'chosen' and 'rejected' have no prompt in common");
  return {.chosen = record_of(record, prompt, texts ? &chosen : nullptr, all.chosen),
          .rejected = record_of(record, prompt, texts ? &rejected : nullptr, all.rejected),
          .prompt = all.prompt.dump()};
}

}  // namespace bloomery
