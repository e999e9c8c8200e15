// The JSON of OpenAI's API.
#include <nlohmann/json.hpp>

#include "serve/json_text.h"
#include "serve/text_answer.h"

namespace bloomery {
namespace {

using Json = nlohmann::ordered_json;

// An object that goes on with another field.
std::string unclosed(const Json& object, const char* field) {
  std::string text = json_text(object);
  text.pop_back();
  return concat(text, ",\"", field, "\":");
}

std::string choice_closing(const std::optional<Finish>& finish) {
  const char* const reason = !finish                                             ? "null"
                             : *finish == Finish::end || *finish == Finish::stop ? "\"stop\""
                                                                                 : "\"length\"";
  return concat(",\"finish_reason\":", reason, "}");
}

}  // namespace

TokenRun TextAnswer::Piece::run(std::int64_t first_offset) const {
  std::span<const ScoredToken> of_prompt;
  if (prompt) {
    of_prompt = std::span(*prompt).subspan(first, last - first);
  }
  return {of_prompt, tokens, first_offset};
}

// What stands before a choice's own text.
const std::string& TextAnswer::echo(std::size_t choice) const {
  return prompts_[choice / static_cast<std::size_t>(request_.num_samples)].text;
}

// All before the choices.
std::string TextAnswer::opening() const {
  const char* const kind = !request_.chat    ? "text_completion"
                           : request_.stream ? "chat.completion.chunk"
                                             : "chat.completion";
  return unclosed({{"id", id_}, {"object", kind}, {"created", created_}, {"model", model_.name()}},
                  "choices") +
         "[";
}

std::string TextAnswer::usage() const {
  std::int64_t prompt_tokens = 0;
  for (const PromptFacts& prompt : prompts_) {
    prompt_tokens += prompt.num_tokens;
  }
  return json_text({{"prompt_tokens", prompt_tokens},
                    {"completion_tokens", num_new_},
                    {"total_tokens", prompt_tokens + num_new_}});
}

// A choice up to its log-probabilities.
std::string TextAnswer::choice_opening(std::size_t choice, const std::string& text, bool begins,
                                       bool ends) const {
  Json json = {{"index", choice}};
  if (!request_.chat) {
    json["text"] = text;
  } else if (!request_.stream) {
    json["message"] = {{"role", "assistant"}, {"content", text}};
  } else if (begins) {
    json["delta"] = {{"role", "assistant"}, {"content", ""}};
  } else if (text.empty() && ends) {
    json["delta"] = Json::object();
  } else {
    json["delta"] = {{"content", text}};
  }
  return unclosed(json, "logprobs");
}

std::string TextAnswer::event(const Piece& piece) {
  const bool echoes = piece.begins && !request_.chat;
  std::string out = "data: " + opening();
  out += choice_opening(piece.choice, echoes ? echo(piece.choice) : piece.text, piece.begins,
                        piece.finish.has_value());
  std::int64_t& offset = choices_[piece.choice].num_characters;
  const TokenRun run = piece.run(offset);
  if (run.size() > 0) {
    LogprobsWriter writer(model_, request_.chat, run);
    while (writer.write(out)) {
    }
    for (std::size_t i = 0; i < run.size(); ++i) {
      offset += num_characters(model_.token_text(run[i].token));
    }
  } else {
    out += "null";
  }
  out += choice_closing(piece.finish);
  out += request_.stream_usage ? "],\"usage\":null}\n\n" : "]}\n\n";
  return out;
}

std::string TextAnswer::last_event() const {
  std::string out;
  if (!failure_.empty()) {
    out = "data: " + failure_ + "\n\n";
  } else if (request_.stream_usage) {
    out = "data: " + opening() + "],\"usage\":" + usage() + "}\n\n";
  }
  return out + "data: [DONE]\n\n";
}

// Of a whole answer what comes next; false: that was the last.
bool TextAnswer::write_part(std::string& out) {
  const Choice& choice = choices_[num_written_];
  if (logprobs_) {
    if (logprobs_->write(out)) {
      return true;
    }
    logprobs_.reset();
  } else {
    out += num_written_ == 0 ? opening() : ",";
    out += choice_opening(num_written_, echo(num_written_) + choice.text, false, true);
    if (request_.logprobs) {
      const std::span<const ScoredToken> prompt =
          choice.prompt ? std::span(*choice.prompt) : std::span<const ScoredToken>();
      logprobs_.emplace(model_, request_.chat, TokenRun{prompt, choice.tokens});
      return true;
    }
    out += "null";
  }
  out += choice_closing(choice.finish);
  if (++num_written_ < choices_.size()) {
    return true;
  }
  out += "],\"usage\":" + usage() + "}";
  return false;
}

}  // namespace bloomery
