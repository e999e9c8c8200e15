#include "serve/megatron_request.h"

#include <nlohmann/json.hpp>

#include "serve/request_fields.h"

namespace bloomery {
namespace {

void require(bool good, const std::string& message) {
  if (!good) {
    throw ApiError(400, message);
  }
}

bool read_flag(const Json& json, const char* name) {
  const auto found = json.find(name);
  if (found == json.end()) {
    return false;
  }
  require(found->is_boolean(), concat(name, " must be a boolean value"));
  return found->get<bool>();
}

bool is_integer(const Json& value) {
  return value.is_number_integer() &&
         !(value.is_number_unsigned() && value.get<std::uint64_t>() > INT64_MAX);
}

void read_prompts(const Json& json, MegatronRequest& request) {
  require(json.contains("prompts"), "prompts argument required");
  require(!json.contains("max_len"), "max_len is no longer used.  Replace with tokens_to_generate");
  require(!json.contains("sentences"), "sentences is no longer used.  Replace with prompts");
  const Json& prompts = json["prompts"];
  require(prompts.is_array(), "prompts is not a list of strings");
  require(!prompts.empty(), "prompts is empty");
  require(prompts.size() <= 128, "Maximum number of prompts is 128");
  for (const Json& prompt : prompts) {
    require(prompt.is_string(), "prompts is not a list of strings");
    request.prompts.push_back(prompt.get<std::string>());
  }
}

void read_length(const Json& json, const RequestDefaults& defaults, MegatronRequest& request) {
  if (const auto found = json.find("tokens_to_generate"); found != json.end()) {
    require(is_integer(*found), "tokens_to_generate must be an integer greater than 0");
    request.tokens_to_generate = found->get<std::int64_t>();
    require(request.tokens_to_generate >= 0,
            "tokens_to_generate must be an integer greater than or equal to 0");
  } else if (defaults.max_tokens) {
    request.tokens_to_generate = *defaults.max_tokens;
    request.cuts_length = true;
  }
  request.logprobs = read_flag(json, "logprobs");
  require(request.tokens_to_generate > 0 || request.logprobs,
          "tokens_to_generate=0 implies logprobs should be True");
}

// A whole number is no float there.
double read_float(const Json& value, const std::string& message) {
  require(value.is_number_float(), message);
  return value.get<double>();
}

void read_top_p(const Json& json, SamplingOptions& s) {
  if (const auto found = json.find("top_p"); found != json.end()) {
    s.top_p = read_float(*found, "top_p must be a positive float less than or equal to 1.0");
    require(!(s.top_p > 0 && s.top_k > 0), "cannot set both top-k and top-p samplings.");
    require(s.top_p >= 0 && s.top_p <= 1, "top_p must be less than or equal to 1.0");
  }
  if (const auto found = json.find("top_p_decay"); found != json.end()) {
    const double decay =
        read_float(*found, "top_p_decay must be a positive float less than or equal to 1.0");
    require(s.top_p != 0, "top_p_decay cannot be set without top_p");
    require(decay >= 0 && decay <= 1, "top_p_decay must be less than or equal to 1.0");
    s.top_p_decay = decay > 0 ? decay : 1;
  }
  if (const auto found = json.find("top_p_bound"); found != json.end()) {
    s.top_p_bound =
        read_float(*found, "top_p_bound must be a positive float less than or equal to top_p");
    require(s.top_p != 0, "top_p_bound cannot be set without top_p");
    require(s.top_p_bound > 0 && s.top_p_bound <= s.top_p,
            "top_p_bound must be greater than 0 and less than top_p");
  }
}

// A request that chooses one of top-k and top-p is not to meet the other as a default.
void take_defaults(const Json& json, const RequestDefaults& defaults, SamplingOptions& s) {
  s.temperature = defaults.temperature.value_or(s.temperature);
  if (!json.contains("top_k") && !json.contains("top_p")) {
    s.top_k = defaults.top_k.value_or(s.top_k);
    s.top_p = defaults.top_p.value_or(s.top_p);
  }
}

void read_sampling(const Json& json, const RequestDefaults& defaults, SamplingOptions& s) {
  take_defaults(json, defaults, s);
  if (const auto found = json.find("temperature"); found != json.end()) {
    const char* const message = "temperature must be a positive number less than or equal to 100.0";
    require(found->is_number(), message);
    s.temperature = found->get<double>();
    require(s.temperature > 0 && s.temperature <= 100, message);
  }
  if (const auto found = json.find("top_k"); found != json.end()) {
    const char* const message =
        "top_k must be an integer equal to or greater than 0 and less than or equal to 1000";
    require(is_integer(*found), message);
    s.top_k = found->get<std::int64_t>();
    require(s.top_k >= 0 && s.top_k <= 1000, message);
  }
  read_top_p(json, s);
}

void read_beams(const Json& json, MegatronRequest& request) {
  if (const auto found = json.find("beam_width"); found != json.end()) {
    require(is_integer(*found), "beam_width must be integer");
    request.beam_width = found->get<std::int64_t>();
    require(*request.beam_width >= 1, "beam_width must be an integer > 1");
    require(*request.beam_width <= 64, "beam_width must be 64 at most");
    require(request.prompts.size() == 1, "When doing beam_search, batch size must be 1");
  }
  if (const auto found = json.find("stop_token"); found != json.end()) {
    require(is_integer(*found) && found->get<std::int64_t>() >= 0 &&
                found->get<std::int64_t>() <= INT32_MAX,
            "stop_token must be an integer");
    request.stop_token = found->get<TokenId>();
  }
  if (const auto found = json.find("length_penalty"); found != json.end()) {
    request.length_penalty = read_float(*found, "length_penalty must be a float");
  }
}

}  // namespace

MegatronRequest parse_megatron_request(std::string_view body, const RequestDefaults& defaults) {
  const Json json = parse_request(body);
  MegatronRequest request;
  read_prompts(json, request);
  read_length(json, defaults, request);
  read_sampling(json, defaults, request.sampling);
  request.add_bos = read_flag(json, "add_BOS");
  for (const std::string& prompt : request.prompts) {
    require(!prompt.empty() || request.add_bos, "Empty prompts require add_BOS=true");
  }
  request.stop_on_double_eol = read_flag(json, "stop_on_double_eol");
  request.stop_on_eol = read_flag(json, "stop_on_eol");
  request.prevent_newline_after_colon = read_flag(json, "prevent_newline_after_colon");
  if (const auto found = json.find("random_seed"); found != json.end()) {
    require(is_integer(*found), "random_seed must be integer");
    require(found->get<std::int64_t>() >= 0, "random_seed must be a positive integer");
    request.random_seed = found->get<std::int64_t>();
  }
  request.no_log = read_flag(json, "no_log");
  read_beams(json, request);
  return request;
}

}  // namespace bloomery
