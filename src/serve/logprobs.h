// Log-probabilities of tokens in the two forms that OpenAI's API has: {tokens, token_logprobs,
// top_logprobs, text_offset} of completions, {content: [{token, logprob, bytes, top_logprobs}]} of
// chats.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string_view>

#include "generate/engine.h"
#include "serve/served_model.h"

namespace bloomery {

// Tokens in a row: of a prompt, which samples share, and those that follow.
struct TokenRun {
  std::span<const ScoredToken> prompt, tokens;
  std::int64_t first_offset = 0;  // characters of the text before them

  std::size_t size() const { return prompt.size() + tokens.size(); }
  const ScoredToken& operator[](std::size_t i) const {
    return i < prompt.size() ? prompt[i] : tokens[i - prompt.size()];
  }
};

// Writes them in blocks, since those of long prompts with alternatives are megabytes.
class LogprobsWriter {
 public:
  // The model and the tokens must outlive it.
  LogprobsWriter(const ServedModel& model, bool chat, const TokenRun& run)
      : model_(model), chat_(chat), run_(run), offset_(run.first_offset) {}

  // Appends the next block; false: it was the last one.
  bool write(std::string& out);

 private:
  nlohmann::ordered_json element(const ScoredToken& token);

  const ServedModel& model_;
  const bool chat_;
  const TokenRun run_;
  std::int64_t offset_;
  std::size_t list_ = 0, token_ = 0;  // where the next block begins
};

// Characters of a UTF-8 text.
std::int64_t num_characters(std::string_view text);

}  // namespace bloomery
