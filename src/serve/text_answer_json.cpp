// The JSON of OpenAI's API.
#include <nlohmann/json.hpp>

#include "serve/logprobs.h"
#include "serve/text_answer.h"

namespace bloomery {
namespace {

using Json = nlohmann::ordered_json;

std::string printed(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json reason(const std::optional<Finish>& finish) {
  if (!finish) {
    return nullptr;
  }
  return *finish == Finish::end || *finish == Finish::stop ? "stop" : "length";
}

}  // namespace

Json TextAnswer::object(bool in_stream) const {
  const char* const kind = !request_.chat ? "text_completion"
                           : in_stream    ? "chat.completion.chunk"
                                          : "chat.completion";
  return {{"id", id_}, {"object", kind}, {"created", created_}, {"model", model_.name()}};
}

Json TextAnswer::usage() const {
  std::int64_t prompt_tokens = 0;
  for (const PromptFacts& prompt : prompts_) {
    prompt_tokens += prompt.num_tokens;
  }
  return {{"prompt_tokens", prompt_tokens},
          {"completion_tokens", num_new_},
          {"total_tokens", prompt_tokens + num_new_}};
}

Json TextAnswer::choice_json(const Piece& piece, std::int64_t first_offset) const {
  Json choice = {{"index", piece.choice}};
  if (!request_.chat) {
    choice["text"] = piece.text;
  } else if (!request_.stream) {
    choice["message"] = {{"role", "assistant"}, {"content", piece.text}};
  } else if (piece.first) {
    choice["delta"] = {{"role", "assistant"}, {"content", ""}};
  } else if (piece.text.empty() && piece.finish) {
    choice["delta"] = Json::object();
  } else {
    choice["delta"] = {{"content", piece.text}};
  }
  const bool has_logs = request_.logprobs && (!request_.stream || !piece.tokens.empty());
  const TokenRun run{piece.tokens, piece.has_probability, first_offset};
  choice["logprobs"] = !has_logs       ? Json()
                       : request_.chat ? chat_logprobs(model_, run)
                                       : completion_logprobs(model_, run);
  choice["finish_reason"] = reason(piece.finish);
  return choice;
}

std::string TextAnswer::whole() const {
  const std::lock_guard lock(mutex_);
  Json answer = object(false);
  answer["choices"] = Json::array();
  for (const Choice& choice : choices_) {
    answer["choices"].push_back(choice_json(choice.all, 0));
  }
  answer["usage"] = usage();
  return printed(answer);
}

// A piece of no choice is the usage at the end.
std::string TextAnswer::event(const Piece& piece) {
  Json answer = object(true);
  answer["choices"] = Json::array();
  if (piece.choice < choices_.size()) {
    std::int64_t& offset = choices_[piece.choice].num_characters;
    answer["choices"].push_back(choice_json(piece, offset));
    for (const ScoredToken& token : piece.tokens) {
      offset += num_characters(model_.token_text(token.token));
    }
    if (request_.stream_usage) {
      answer["usage"] = nullptr;
    }
  } else {
    answer["usage"] = usage();
  }
  return "data: " + printed(answer) + "\n\n";
}

}  // namespace bloomery
