// A request for text by OpenAI's API, for a completion or in a chat.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "generate/engine.h"
#include "serve/request_defaults.h"

namespace bloomery {

struct TextPrompt {
  std::string text;
  std::vector<TokenId> ids;  // instead of the text, where not empty
};

struct TextRequest {
  static constexpr std::int64_t kMostSamples = 16, kMostPrompts = 128;
  // Of all prompts and samples, with the alternatives to each token.
  static constexpr std::int64_t kMostLogprobs = std::int64_t{1} << 22;

  bool chat = false;
  std::string model;                              // empty: whichever is served
  std::vector<TextPrompt> prompts;                // of a completion
  std::string messages = "null", tools = "null";  // of a chat, JSON
  std::optional<std::int64_t> max_tokens;
  std::int64_t num_samples = 1;
  bool stream = false, stream_usage = false, echo = false;
  bool ignore_eos = false, add_special_tokens = true, skip_special_tokens = true;
  std::optional<std::int64_t> logprobs;  // so many alternatives; none: no log-probabilities
  SamplingOptions sampling;
  bool has_seed = false;
  TokenBiases biases;
  std::vector<std::string> stops;
  std::vector<TokenId> stop_tokens;
};

// An ApiError says which field is wrong. Whether tokens are the model's is not known here.
TextRequest parse_text_request(std::string_view body, bool chat,
                               const RequestDefaults& defaults = {});

}  // namespace bloomery
