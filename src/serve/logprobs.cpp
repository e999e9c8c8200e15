#include "serve/logprobs.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace bloomery {
namespace {

using Json = nlohmann::ordered_json;

Json bytes_of(const std::string& text) {
  Json bytes = Json::array();
  for (const char c : text) {
    bytes.push_back(static_cast<unsigned char>(c));
  }
  return bytes;
}

Json chat_token(const ServedModel& model, TokenId token, float log_probability) {
  const std::string text = model.token_text(token);
  return {{"token", text}, {"logprob", log_probability}, {"bytes", bytes_of(text)}};
}

}  // namespace

std::int64_t num_characters(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

Json completion_logprobs(const ServedModel& model, const TokenRun& run) {
  Json tokens = Json::array(), logs = Json::array(), tops = Json::array(), offsets = Json::array();
  std::int64_t offset = run.first_offset;
  for (std::size_t i = 0; i < run.tokens.size(); ++i) {
    const ScoredToken& scored = run.tokens[i];
    const std::string text = model.token_text(scored.token);
    tokens.push_back(text);
    offsets.push_back(offset);
    offset += num_characters(text);
    if (!run.has_probability[i]) {
      logs.push_back(nullptr);
      tops.push_back(nullptr);
      continue;
    }
    logs.push_back(scored.log_probability);
    Json top = Json::object();
    for (const Drawn& each : scored.alternatives) {
      top[model.token_text(each.token)] = each.log_probability;
    }
    top[text] = scored.log_probability;  // the token itself is always there
    tops.push_back(std::move(top));
  }
  return {{"tokens", std::move(tokens)},
          {"token_logprobs", std::move(logs)},
          {"top_logprobs", std::move(tops)},
          {"text_offset", std::move(offsets)}};
}

Json chat_logprobs(const ServedModel& model, const TokenRun& run) {
  Json content = Json::array();
  for (const ScoredToken& scored : run.tokens) {
    Json one = chat_token(model, scored.token, scored.log_probability);
    Json top = Json::array();
    for (const Drawn& each : scored.alternatives) {
      top.push_back(chat_token(model, each.token, each.log_probability));
    }
    one["top_logprobs"] = std::move(top);
    content.push_back(std::move(one));
  }
  return {{"content", std::move(content)}};
}

}  // namespace bloomery
