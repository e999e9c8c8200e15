// What Megatron's server takes by PUT /api, with its texts for what is wrong.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ops/sampling/sampling.h"
#include "serve/request_defaults.h"
#include "tokenizer/tokenizer.h"

namespace bloomery {

struct MegatronRequest {
  std::vector<std::string> prompts;
  std::int64_t tokens_to_generate = 64;
  bool cuts_length = false;  // to the room there is: the length is the server's default
  bool logprobs = false, add_bos = false;
  bool stop_on_double_eol = false, stop_on_eol = false, prevent_newline_after_colon = false;
  bool no_log = false;
  SamplingOptions sampling;
  std::optional<std::int64_t> random_seed, beam_width;
  std::optional<TokenId> stop_token;  // of beams; none: the end of a document
  double length_penalty = 1;
};

// An ApiError has Megatron's words.
MegatronRequest parse_megatron_request(std::string_view body, const RequestDefaults& defaults = {});

}  // namespace bloomery
