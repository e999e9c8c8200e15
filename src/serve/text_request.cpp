#include "serve/text_request.h"

#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

#include "serve/request_fields.h"

namespace bloomery {
namespace {

constexpr std::size_t kMostStops = 16, kStopBytes = 256, kMostBiases = 300;

bool is_token(const Json& value) {
  return value.is_number_integer() && value.get<double>() >= 0 &&
         value.get<double>() <= std::numeric_limits<TokenId>::max();
}

TextPrompt read_ids(const Json& list) {
  TextPrompt prompt;
  for (const Json& id : list) {
    if (!is_token(id)) {
      throw ApiError(400, "prompt must have token ids, which are whole numbers from 0 on",
                     "prompt");
    }
    prompt.ids.push_back(id.get<TokenId>());
  }
  if (prompt.ids.empty()) {
    throw ApiError(400, "prompt has a list without token ids", "prompt");
  }
  return prompt;
}

// A string, strings, token ids or lists of them.
std::vector<TextPrompt> read_prompts(const RequestFields& fields) {
  const Json* const value = fields.find("prompt");
  if (value == nullptr) {
    throw ApiError(400, "prompt is missing: give a string, token ids, or a list of those",
                   "prompt");
  }
  if (value->is_string()) {
    return {{value->get<std::string>(), {}}};
  }
  if (!value->is_array() || value->empty()) {
    throw ApiError(400, "prompt must be a string, token ids, or a list of those", "prompt");
  }
  if (value->front().is_number()) {
    return {read_ids(*value)};
  }
  if (std::ssize(*value) > TextRequest::kMostPrompts) {
    throw ApiError(
        400,
        concat("prompt has ", value->size(), " prompts, there may be ", TextRequest::kMostPrompts),
        "prompt");
  }
  std::vector<TextPrompt> prompts;
  for (const Json& one : *value) {
    if (one.is_string()) {
      prompts.push_back({one.get<std::string>(), {}});
    } else if (one.is_array()) {
      prompts.push_back(read_ids(one));
    } else {
      throw ApiError(400, "prompt must be a string, token ids, or a list of those", "prompt");
    }
  }
  return prompts;
}

// Content in parts becomes one text: templates know no other.
Json read_message(const Json& given) {
  if (!given.is_object() || !given.contains("role") || !given["role"].is_string()) {
    throw ApiError(400, "messages must be objects with a role", "messages");
  }
  Json message = given;
  const auto content = given.find("content");
  if (content == given.end() || content->is_null() || content->is_string()) {
    return message;
  }
  std::string text;
  for (const Json& part : content->is_array() ? *content : Json::array({Json()})) {
    if (!part.is_object() || part.value("type", Json()) != "text" || !part.contains("text") ||
        !part["text"].is_string()) {
      throw ApiError(400, "content of a message must be a string or parts of type text",
                     "messages");
    }
    text += part["text"].get<std::string>();
  }
  message["content"] = text;
  return message;
}

void read_messages(const RequestFields& fields, TextRequest& request) {
  const Json* const value = fields.find("messages");
  if (value == nullptr || !value->is_array() || value->empty()) {
    throw ApiError(400, "messages must be a list of at least one message", "messages");
  }
  Json messages = Json::array();
  for (const Json& message : *value) {
    messages.push_back(read_message(message));
  }
  request.messages = messages.dump();
  if (const Json* const tools = fields.find("tools")) {
    request.tools = tools->dump();
  }
}

void read_sampling(const RequestFields& fields, const RequestDefaults& defaults,
                   TextRequest& request) {
  SamplingOptions& s = request.sampling;
  s.temperature = fields.number("temperature", 0, 100).value_or(defaults.temperature.value_or(1));
  if (s.temperature < 1e-5) {
    s.temperature = 0;
  }
  s.top_p = fields.number("top_p", 1e-9, 1).value_or(defaults.top_p.value_or(1));
  s.top_k = std::max<std::int64_t>(
      0, fields.integer("top_k", -1, INT32_MAX).value_or(defaults.top_k.value_or(0)));
  s.min_p = fields.number("min_p", 0, 1).value_or(0);
  s.repetition_penalty = fields.number("repetition_penalty", 1e-3, 1e3).value_or(1);
  s.presence_penalty = fields.number("presence_penalty", -2, 2).value_or(0);
  s.frequency_penalty = fields.number("frequency_penalty", -2, 2).value_or(0);
  const auto seed = fields.integer("seed", INT64_MIN, INT64_MAX);
  request.has_seed = seed.has_value();
  s.seed = static_cast<std::uint64_t>(seed.value_or(0));
}

void read_biases(const RequestFields& fields, TextRequest& request) {
  const Json* const value = fields.find("logit_bias");
  if (value == nullptr) {
    return;
  }
  if (!value->is_object() || value->size() > kMostBiases) {
    throw ApiError(400, concat("logit_bias must be an object of ", kMostBiases, " tokens at most"),
                   "logit_bias");
  }
  for (const auto& [key, bias] : value->items()) {
    TokenId token = 0;
    const auto [end, status] = std::from_chars(key.data(), key.data() + key.size(), token);
    if (status != std::errc() || end != key.data() + key.size() || token < 0 || !bias.is_number() ||
        !(bias.get<double>() >= -100 && bias.get<double>() <= 100)) {
      throw ApiError(400, "logit_bias must have numbers from -100 to 100 by token id",
                     "logit_bias");
    }
    request.biases.emplace_back(token, bias.get<float>());
  }
}

void read_logprobs(const RequestFields& fields, TextRequest& request) {
  if (!request.chat) {
    request.logprobs = fields.integer("logprobs", 0, TopTokens::kMost);
    return;
  }
  const auto alternatives = fields.integer("top_logprobs", 0, TopTokens::kMost);
  if (fields.boolean("logprobs", false)) {
    request.logprobs = alternatives.value_or(0);
  } else if (alternatives.value_or(0) > 0) {
    throw ApiError(400, "top_logprobs needs logprobs to be true", "top_logprobs");
  }
}

void refuse_unsupported(const RequestFields& fields) {
  if (fields.find("suffix") != nullptr) {
    throw ApiError(400, "suffix is not supported", "suffix");
  }
  fields.integer("best_of", 1, 1);
  const Json* const format = fields.find("response_format");
  if (format != nullptr && (!format->is_object() || format->value("type", Json()) != "text")) {
    throw ApiError(400, "response_format may only be of type text", "response_format");
  }
}

}  // namespace

TextRequest parse_text_request(std::string_view body, bool chat, const RequestDefaults& defaults) {
  const Json json = parse_request(body);
  const RequestFields fields(json);
  TextRequest request{.chat = chat};
  refuse_unsupported(fields);
  request.model = fields.text("model");
  if (chat) {
    read_messages(fields, request);
    request.max_tokens = fields.integer("max_completion_tokens", 1, INT32_MAX);
  } else {
    request.prompts = read_prompts(fields);
    request.echo = fields.boolean("echo", false);
    request.add_special_tokens = fields.boolean("add_special_tokens", true);
  }
  if (!request.max_tokens) {
    request.max_tokens = fields.integer("max_tokens", chat ? 1 : 0, INT32_MAX);
  }
  if (request.max_tokens == 0 && !request.echo) {
    throw ApiError(400, "max_tokens 0 needs echo: there would be no text", "max_tokens");
  }
  request.num_samples = fields.integer("n", 1, TextRequest::kMostSamples).value_or(1);
  request.stream = fields.boolean("stream", false);
  if (const Json* const options = fields.find("stream_options")) {
    if (!options->is_object()) {
      throw ApiError(400, "stream_options must be an object", "stream_options");
    }
    request.stream_usage = RequestFields(*options).boolean("include_usage", false);
  }
  request.ignore_eos = fields.boolean("ignore_eos", false);
  request.skip_special_tokens = fields.boolean("skip_special_tokens", true);
  read_logprobs(fields, request);
  read_sampling(fields, defaults, request);
  read_biases(fields, request);
  request.stops = fields.texts("stop", kMostStops, kStopBytes);
  request.stop_tokens = fields.tokens("stop_token_ids", 64);
  return request;
}

}  // namespace bloomery
