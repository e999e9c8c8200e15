// The answer to a TextRequest while it is made: what the engine says goes in, OpenAI's JSON comes
// out, whole at the end or in events.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>

#include "serve/http.h"
#include "serve/logprobs.h"
#include "serve/metrics.h"
#include "serve/served_model.h"

namespace bloomery {

class TextAnswer : public HttpBody, public std::enable_shared_from_this<TextAnswer> {
 public:
  using Clock = std::chrono::steady_clock;

  // What the answer reports of a prompt.
  struct PromptFacts {
    std::string text;  // for `echo`
    std::int64_t num_tokens = 0;
  };

  // Model and metrics must outlive it. Of the request, prompts are not needed.
  TextAnswer(std::shared_ptr<HttpExchange> exchange, const TextRequest& request,
             std::vector<PromptFacts> prompts, const ServedModel& model, ServerMetrics& metrics,
             Clock::time_point deadline);

  // Who listens to the engine about a prompt.
  std::shared_ptr<EngineListener> listener(std::size_t prompt);

  State read(std::string& out) override;

 private:
  class PromptListener;
  using PromptScores = std::shared_ptr<const std::vector<ScoredToken>>;
  // What an event of a stream says of a choice.
  struct Piece {
    std::size_t choice = 0;
    std::string text = {};
    PromptScores prompt = nullptr;  // with the tokens of the prompt from first to last
    std::size_t first = 0, last = 0;
    std::vector<ScoredToken> tokens = {};
    std::optional<Finish> finish = {};
    bool begins = false;  // with the role of a chat, the prompt of an echo

    TokenRun run(std::int64_t first_offset) const;
  };
  struct Choice {
    std::string text;  // this and the next three without a stream
    PromptScores prompt;
    std::vector<ScoredToken> tokens;
    std::optional<Finish> finish;
    std::int64_t num_characters = 0;  // of the tokens in events so far
    bool begun = false;               // a token came
    Clock::time_point last = {};      // when
  };

  bool wanted() const;
  void on_prompt(std::size_t prompt, std::vector<ScoredToken> scores);
  void on_token(std::size_t choice, const ScoredToken& token, const std::string& text);
  void on_end(std::size_t choice, Finish finish, const std::string& text);
  void on_dropped();
  void on_failure(const std::string& message, int status);
  void put(Piece piece);
  void finish();

  const std::string& echo(std::size_t choice) const;
  std::string opening() const;
  std::string usage() const;
  std::string choice_opening(std::size_t choice, const std::string& text, bool begins,
                             bool ends) const;
  std::string event(const Piece& piece);
  std::string last_event() const;
  bool write_part(std::string& out);

  const std::shared_ptr<HttpExchange> exchange_;
  const TextRequest request_;
  const std::vector<PromptFacts> prompts_;
  const ServedModel& model_;
  ServerMetrics& metrics_;
  const Clock::time_point begin_ = Clock::now(), deadline_;
  const std::string id_;
  const std::int64_t created_;

  mutable std::mutex mutex_;
  std::vector<Choice> choices_;
  std::size_t num_ended_ = 0;
  std::int64_t num_new_ = 0;
  bool over_ = false;                       // nothing follows
  std::deque<Piece> pieces_;                // of a stream, not read yet
  std::string failure_;                     // JSON of an error
  std::size_t num_written_ = 0;             // choices of a whole answer
  std::optional<LogprobsWriter> logprobs_;  // of the next one
  bool end_was_read_ = false;
};

}  // namespace bloomery
