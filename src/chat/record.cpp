#include "chat/record.h"

#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_scan.h"

namespace bloomery {
namespace {

using Json = nlohmann::ordered_json;

bool has_text(const Json& record, const char* key) {
  return record.contains(key) && record[key].is_string();
}

RecordFormat recognise(const Json& record) {
  if (record.contains("messages")) return RecordFormat::messages;
  if (record.contains("conversations")) return RecordFormat::sharegpt;
  if (has_text(record, "instruction") && has_text(record, "output")) return RecordFormat::alpaca;
  if (has_text(record, "instruction") && has_text(record, "response")) return RecordFormat::dolly;
  const bool answered = has_text(record, "response") || has_text(record, "completion");
  return has_text(record, "prompt") && answered ? RecordFormat::pairs : RecordFormat::columns;
}

std::string text_of(const Json& record, const char* key) {
  check(has_text(record, key), "the record has no text '", key, "'");
  return record[key].get<std::string>();
}

// A text that may be absent, null or empty.
std::string optional_text(const Json& record, const char* key) {
  if (!record.contains(key) || record[key].is_null()) return "";
  return text_of(record, key);
}

Json turn(const char* role, std::string content) {
  return {{"role", role}, {"content", std::move(content)}};
}

void add_system(const Json& record, Json& messages) {
  const std::string text = optional_text(record, "system");
  if (!text.empty()) messages.push_back(turn("system", text));
}

// Of Alpaca and Dolly: the question with its context below it.
Json instruction_turns(const Json& record, const char* context, const char* answer) {
  Json messages = Json::array();
  add_system(record, messages);
  if (record.contains("history") && record["history"].is_array()) {
    for (const Json& pair : record["history"]) {
      check(pair.is_array() && pair.size() == 2 && pair[0].is_string() && pair[1].is_string(),
            "an item of 'history' is not a pair of texts");
      messages.push_back(turn("user", pair[0].get<std::string>()));
      messages.push_back(turn("assistant", pair[1].get<std::string>()));
    }
  }
  std::string question = text_of(record, "instruction");
  const std::string more = optional_text(record, context);
  if (!more.empty()) question += "\n" + more;
  messages.push_back(turn("user", std::move(question)));
  messages.push_back(turn("assistant", text_of(record, answer)));
  return messages;
}

Json sharegpt_turns(const Json& record) {
  static const std::map<std::string, const char*> kRoles = {
      {"human", "user"},          {"user", "user"},     {"gpt", "assistant"},
      {"assistant", "assistant"}, {"system", "system"}, {"function_call", "assistant"},
      {"observation", "tool"},    {"tool", "tool"}};
  Json messages = Json::array();
  add_system(record, messages);
  check(record.contains("conversations") && record["conversations"].is_array(),
        "'conversations' is no list");
  for (const Json& item : record["conversations"]) {
    check(item.is_object(), "an item of 'conversations' is no object");
    const std::string from = text_of(item, "from");
    const auto role = kRoles.find(from);
    check(role != kRoles.end(), "'conversations' has an item from '", from, "', which is unknown");
    messages.push_back(turn(role->second, text_of(item, "value")));
  }
  return messages;
}

Json openai_turns(const Json& record) {
  check(record.contains("messages") && record["messages"].is_array(), "'messages' is no list");
  for (const Json& item : record["messages"]) {
    check(item.is_object() && has_text(item, "role"), "an item of 'messages' has no 'role'");
  }
  return record["messages"];
}

Json turns(const Json& record, RecordFormat format) {
  switch (format) {
    case RecordFormat::messages:
      return openai_turns(record);
    case RecordFormat::sharegpt:
      return sharegpt_turns(record);
    case RecordFormat::alpaca:
      return instruction_turns(record, "input", "output");
    case RecordFormat::dolly:
      return instruction_turns(record, "context", "response");
    case RecordFormat::pairs:
      return Json::array(
          {turn("user", text_of(record, "prompt")),
           turn("assistant",
                text_of(record, has_text(record, "response") ? "response" : "completion"))});
    default:
      return nullptr;
  }
}

// Some data sets keep the list of tools as a text of JSON.
Json tools_of(const Json& record) {
  if (!record.contains("tools")) return nullptr;
  const Json& tools = record["tools"];
  if (!tools.is_string()) return tools;
  const std::string text = tools.get<std::string>();
  check_json_depth(text);
  const Json parsed = Json::parse(text, nullptr, false);
  return parsed.is_array() && !parsed.empty() ? parsed : Json();
}

}  // namespace

Record read_record(std::string_view json, RecordFormat format) {
  check_json_depth(json);
  Json record;
  try {
    record = Json::parse(json);
  } catch (const Json::exception& error) {
    throw Error(concat("not valid JSON: ", error.what()));
  }
  check(record.is_object(), "not a JSON object");
  const RecordFormat own = format == RecordFormat::automatic ? recognise(record) : format;
  return {.columns = record.dump(),
          .messages = turns(record, own).dump(),
          .tools = tools_of(record).dump(),
          .has_two_answers = own == RecordFormat::columns && record.contains("chosen") &&
                             record.contains("rejected")};
}

}  // namespace bloomery
