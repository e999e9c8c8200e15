#include "serve/logprobs.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "serve/json_text.h"

namespace bloomery {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kBlock = 256;  // tokens

enum List : std::uint8_t { kTokens, kLogprobs, kTops, kOffsets, kNumLists };
constexpr const char* kNames[] = {"tokens", "token_logprobs", "top_logprobs", "text_offset"};

Json bytes_of(const std::string& text) {
  Json bytes = Json::array();
  for (const char c : text) {
    bytes.push_back(static_cast<unsigned char>(c));
  }
  return bytes;
}

Json chat_token(const ServedModel& model, TokenId token, float log_probability) {
  return {{"token", model.token_text(token)},
          {"logprob", log_probability},
          {"bytes", bytes_of(model.token_bytes(token))}};
}

}  // namespace

std::int64_t num_characters(std::string_view text) {
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

// Of the list that is being written.
Json LogprobsWriter::element(const ScoredToken& scored) {
  if (chat_) {
    Json one = chat_token(model_, scored.token, scored.log_probability);
    one["top_logprobs"] = Json::array();
    for (const Drawn& each : scored.alternatives) {
      one["top_logprobs"].push_back(chat_token(model_, each.token, each.log_probability));
    }
    return one;
  }
  const std::string& text = model_.token_text(scored.token);
  if (list_ == kTokens) {
    return text;
  }
  if (list_ == kOffsets) {
    return std::exchange(offset_, offset_ + num_characters(text));
  }
  if (std::isnan(scored.log_probability)) {
    return nullptr;
  }
  if (list_ == kLogprobs) {
    return scored.log_probability;
  }
  Json top = Json::object();
  for (const Drawn& each : scored.alternatives) {
    top[model_.token_text(each.token)] = each.log_probability;
  }
  top[text] = scored.log_probability;  // the token itself is always there
  return top;
}

bool LogprobsWriter::write(std::string& out) {
  if (token_ == 0) {
    out += list_ == 0 ? "{\"" : ",\"";
    out += chat_ ? "content" : kNames[list_];
    out += "\":[";
  }
  for (const std::size_t end = std::min(token_ + kBlock, run_.size()); token_ < end; ++token_) {
    out += token_ == 0 ? "" : ",";
    out += json_text(element(run_[token_]));
  }
  if (token_ < run_.size()) {
    return true;
  }
  token_ = 0;
  const bool last = ++list_ == (chat_ ? 1 : kNumLists);
  out += last ? "]}" : "]";
  return !last;
}

}  // namespace bloomery
