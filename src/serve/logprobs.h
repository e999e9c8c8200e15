// Log-probabilities of tokens in the two forms that OpenAI's API has.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <vector>

#include "generate/engine.h"
#include "serve/served_model.h"

namespace bloomery {

// Tokens in a row; those without a probability are the first of a prompt.
struct TokenRun {
  std::span<const ScoredToken> tokens;
  const std::vector<bool>& has_probability;
  std::int64_t first_offset = 0;  // characters of the text before them
};

// {tokens, token_logprobs, top_logprobs, text_offset} of completions.
nlohmann::ordered_json completion_logprobs(const ServedModel& model, const TokenRun& run);
// {content: [{token, logprob, bytes, top_logprobs}]} of chats.
nlohmann::ordered_json chat_logprobs(const ServedModel& model, const TokenRun& run);
// Characters of a UTF-8 text.
std::int64_t num_characters(std::string_view text);

}  // namespace bloomery
