#include "serve/text_answer.h"

#include <algorithm>
#include <ctime>
#include <iterator>
#include <random>

#include "serve/api_error.h"

namespace bloomery {
namespace {

std::string random_id(bool chat) {
  constexpr const char* kDigits = "0123456789abcdef";
  thread_local std::mt19937_64 numbers{std::random_device{}()};
  std::string id = chat ? "chatcmpl-" : "cmpl-";
  for (int i = 0; i < 24; ++i) {
    id += kDigits[numbers() % 16];
  }
  return id;
}

double seconds(TextAnswer::Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

// What the engine says about one prompt, whose choices follow each other.
class TextAnswer::PromptListener final : public EngineListener {
 public:
  PromptListener(std::shared_ptr<TextAnswer> answer, std::size_t prompt)
      : answer_(std::move(answer)), prompt_(prompt) {}
  bool wanted() const override { return answer_->wanted(); }
  void on_prompt(std::vector<ScoredToken> scores) override {
    answer_->on_prompt(prompt_, std::move(scores));
  }
  void on_token(std::int64_t sample, const ScoredToken& token, const std::string& text) override {
    answer_->on_token(choice(sample), token, text);
  }
  void on_end(std::int64_t sample, Finish finish, const std::string& text) override {
    answer_->on_end(choice(sample), finish, text);
  }
  void on_dropped() override { answer_->on_dropped(); }
  void on_failure(const std::string& message) override { answer_->on_failure(message, 500); }

 private:
  std::size_t choice(std::int64_t sample) const {
    return prompt_ * static_cast<std::size_t>(answer_->request_.num_samples) +
           static_cast<std::size_t>(sample);
  }
  std::shared_ptr<TextAnswer> answer_;
  std::size_t prompt_;
};

TextAnswer::TextAnswer(std::shared_ptr<HttpExchange> exchange, const TextRequest& request,
                       std::vector<PromptFacts> prompts, const ServedModel& model,
                       ServerMetrics& metrics, Clock::time_point deadline)
    : exchange_(std::move(exchange)),
      request_(request),
      prompts_(std::move(prompts)),
      model_(model),
      metrics_(metrics),
      deadline_(deadline),
      id_(random_id(request.chat)),
      created_(std::time(nullptr)),
      choices_(prompts_.size() * static_cast<std::size_t>(request.num_samples)) {
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    if (request_.stream && (request_.chat || request_.echo)) {
      pieces_.push_back({.choice = i, .begins = true});
    }
  }
}

std::shared_ptr<EngineListener> TextAnswer::listener(std::size_t prompt) {
  return std::make_shared<PromptListener>(shared_from_this(), prompt);
}

bool TextAnswer::wanted() const { return !exchange_->left() && Clock::now() < deadline_; }

// Of a stream, as an event; else into the choice.
void TextAnswer::put(Piece piece) {
  if (request_.stream) {
    pieces_.push_back(std::move(piece));
    return;
  }
  Choice& to = choices_[piece.choice];
  to.text += piece.text;
  std::ranges::move(piece.tokens, std::back_inserter(to.tokens));
  to.finish = piece.finish;
}

// Samples share the scores; events have them in blocks.
void TextAnswer::on_prompt(std::size_t prompt, std::vector<ScoredToken> scores) {
  constexpr std::size_t kBlock = 256;
  const auto shared = std::make_shared<const std::vector<ScoredToken>>(std::move(scores));
  const auto samples = static_cast<std::size_t>(request_.num_samples);
  {
    const std::lock_guard lock(mutex_);
    for (std::size_t choice = prompt * samples; choice < (prompt + 1) * samples; ++choice) {
      if (!request_.stream) {
        choices_[choice].prompt = shared;
        continue;
      }
      for (std::size_t first = 0; first < shared->size(); first += kBlock) {
        put({.choice = choice,
             .prompt = shared,
             .first = first,
             .last = std::min(first + kBlock, shared->size())});
      }
    }
  }
  if (request_.stream) {
    exchange_->wake();
  }
}

void TextAnswer::on_token(std::size_t choice, const ScoredToken& token, const std::string& text) {
  {
    const std::lock_guard lock(mutex_);
    Choice& to = choices_[choice];
    const auto now = Clock::now();
    if (to.begun) {
      metrics_.between_tokens(seconds(now - to.last));
    } else {
      metrics_.first_token(seconds(now - begin_));
    }
    to.begun = true;
    to.last = now;
    ++num_new_;
    Piece piece{.choice = choice, .text = text};
    if (request_.logprobs) {
      piece.tokens = {token};
    }
    if (text.empty() && piece.tokens.empty()) {
      return;
    }
    put(std::move(piece));
  }
  if (request_.stream) {
    exchange_->wake();
  }
}

void TextAnswer::on_end(std::size_t choice, Finish finish, const std::string& text) {
  bool all = false;
  {
    const std::lock_guard lock(mutex_);
    put({.choice = choice, .text = text, .finish = finish});
    metrics_.sequence_ended(finish == Finish::length ? "length" : "stop");
    all = ++num_ended_ == choices_.size();
    over_ = over_ || all;
  }
  if (all) {
    this->finish();
  } else if (request_.stream) {
    exchange_->wake();
  }
}

void TextAnswer::finish() {
  std::int64_t prompt_tokens = 0;
  for (const PromptFacts& prompt : prompts_) {
    prompt_tokens += prompt.num_tokens;
  }
  metrics_.request_done(seconds(Clock::now() - begin_), prompt_tokens, num_new_);
  metrics_.answered(200);
  if (request_.stream) {
    exchange_->wake();
  } else {
    exchange_->stream("application/json", shared_from_this());
  }
}

void TextAnswer::on_dropped() {
  metrics_.sequence_ended("abort");
  if (!exchange_->left()) {
    on_failure("the answer took longer than this server allows", 504);
  }
}

void TextAnswer::on_failure(const std::string& message, int status) {
  const ApiError error(status, message);
  {
    const std::lock_guard lock(mutex_);
    if (over_) {
      return;
    }
    over_ = true;
    failure_ = error.json();
  }
  metrics_.answered(status);
  if (request_.stream) {
    exchange_->wake();
  } else {
    exchange_->respond({.status = status, .body = failure_});
  }
}

// Some of it at a time, since others wait for the server's thread.
HttpBody::State TextAnswer::read(std::string& out) {
  const std::size_t enough = out.size() + (std::size_t{1} << 16);
  const std::lock_guard lock(mutex_);
  if (end_was_read_) {
    return State::end;
  }
  if (!request_.stream) {
    end_was_read_ = !write_part(out);
    return State::more;
  }
  while (!pieces_.empty() && out.size() < enough) {
    out += event(pieces_.front());
    pieces_.pop_front();
  }
  if (!pieces_.empty()) {
    return State::more;
  }
  if (!over_) {
    return State::wait;
  }
  out += last_event();
  end_was_read_ = true;
  return State::more;
}

}  // namespace bloomery
