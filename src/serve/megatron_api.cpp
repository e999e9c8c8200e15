// Megatron's PUT /api.
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "serve/api_error.h"
#include "serve/json_text.h"
#include "serve/megatron_request.h"
#include "serve/service.h"

namespace bloomery {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

// The token that a text is by itself.
std::optional<TokenId> token_of(const ServedModel& model, std::string_view text) {
  std::vector<TokenId> ids;
  model.tokenizer().make_encoder()->encode(text, ids);
  return ids.size() == 1 ? std::optional(ids[0]) : std::nullopt;
}

Json segments(const ServedModel& model, std::span<const TokenId> ids) {
  Json texts = Json::array();
  for (const TokenId id : ids) {
    texts.push_back(model.plain_token_text(id));
  }
  return texts;
}

std::string text_of(const ServedModel& model, std::vector<TokenId> ids) {
  std::erase_if(ids, [&](TokenId id) { return id >= model.tokenizer().vocab_size(); });
  return model.tokenizer().decode(ids);
}

// An answer to all prompts or, of beams, the only one. The engine's thread fills it, the server's
// makes its text.
class Answer : public HttpBody, public std::enable_shared_from_this<Answer> {
 public:
  Answer(const AnswerTools& tools, std::shared_ptr<HttpExchange> exchange, bool logprobs,
         std::vector<std::vector<TokenId>> prompts)
      : tools_(tools),
        exchange_(std::move(exchange)),
        logprobs_(logprobs),
        deadline_(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                     std::chrono::duration<double>(tools.options.request_seconds))),
        ids_(std::move(prompts)),
        logs_(ids_.size()),
        left_(ids_.size()) {}

  class Listener final : public EngineListener {
   public:
    Listener(std::shared_ptr<Answer> answer, std::size_t prompt)
        : answer_(std::move(answer)), prompt_(prompt) {}
    bool wanted() const override {
      return !answer_->over_ && !answer_->exchange_->left() && Clock::now() < answer_->deadline_;
    }
    void on_prompt(std::vector<ScoredToken> scores) override {
      for (std::size_t i = 1; i < scores.size(); ++i) {
        answer_->logs_[prompt_].push_back(scores[i].log_probability);
      }
    }
    void on_token(std::int64_t, const ScoredToken& token, const std::string&) override {
      answer_->ids_[prompt_].push_back(token.token);
      answer_->logs_[prompt_].push_back(token.log_probability);
    }
    void on_end(std::int64_t, Finish, const std::string&) override { answer_->ended(); }
    void on_beams(std::vector<Generation> beams) override {
      answer_->take_beams(beams);
      answer_->ended();
    }
    void on_dropped() override {
      answer_->fail(504, "the answer took longer than this server allows");
    }
    void on_failure(const std::string& message) override { answer_->fail(500, message); }

   private:
    std::shared_ptr<Answer> answer_;
    std::size_t prompt_;
  };

  // Once, whole: nothing is added any more.
  State read(std::string& out) override {
    if (std::exchange(was_read_, true)) {
      return State::end;
    }
    Json texts = Json::array(), parts = Json::array();
    for (const std::vector<TokenId>& ids : ids_) {
      texts.push_back(text_of(tools_.model, ids));
      parts.push_back(segments(tools_.model, ids));
    }
    Json answer = {{"text", std::move(texts)}, {"segments", std::move(parts)}};
    if (scores_.empty()) {
      answer["logprobs"] = logprobs_ ? Json(logs_) : Json();
    } else {
      answer["scores"] = scores_;
    }
    out += json_text(answer);
    return State::more;
  }

 private:
  void take_beams(std::span<const Generation> beams) {
    const std::vector<TokenId> prompt = std::move(ids_[0]);
    ids_.clear();
    for (const Generation& beam : beams) {
      ids_.push_back(prompt);
      ids_.back().insert(ids_.back().end(), beam.ids.begin(), beam.ids.end());
      scores_.push_back(beam.score);
    }
  }
  void ended() {
    if (--left_ > 0) {
      return;
    }
    over_ = true;
    tools_.metrics.answered(200);
    exchange_->stream("application/json", shared_from_this());
  }
  void fail(int status, const std::string& message) {
    if (!over_) {
      over_ = true;
      tools_.metrics.answered(status);
      exchange_->respond({.status = status, .body = json_text({{"message", message}})});
    }
  }

  const AnswerTools& tools_;
  const std::shared_ptr<HttpExchange> exchange_;
  const bool logprobs_;
  const Clock::time_point deadline_;
  std::vector<std::vector<TokenId>> ids_;
  std::vector<std::vector<float>> logs_;
  std::vector<double> scores_;  // of beams
  std::size_t left_;
  bool over_ = false, was_read_ = false;
};

// Either flag replaces the end of a document.
void set_ends(const ServedModel& model, const MegatronRequest& request, EngineRequest& to) {
  if (!request.stop_on_eol && !request.stop_on_double_eol) {
    to.eos_ids = model.eos_ids();
    return;
  }
  const auto one = token_of(model, "\n"), two = token_of(model, "\n\n");
  if (two) {
    to.eos_ids.push_back(*two);
  }
  if (request.stop_on_eol && one) {
    to.eos_ids.push_back(*one);
  }
  if (request.stop_on_double_eol) {
    to.stops.emplace_back("\n\n");
  }
}

EngineRequest engine_request(const AnswerTools& tools, const MegatronRequest& request,
                             std::vector<TokenId> prompt, std::uint64_t seed, std::int64_t number) {
  EngineRequest to{.prompt = std::move(prompt),
                   .max_tokens = request.tokens_to_generate,
                   .prompt_number = number,
                   .sampling = request.sampling,
                   .score_prompt = request.logprobs};
  to.sampling.seed = seed;
  to.mask_prompt = tools.model.forgets(to.prompt);
  if (request.prevent_newline_after_colon) {
    const auto colon = token_of(tools.model, ":"), line = token_of(tools.model, "\n");
    if (colon && line) {
      to.sampling.banned_after = *colon;
      to.sampling.banned = *line;
    }
  }
  set_ends(tools.model, request, to);
  return to;
}

// And cuts a length that is the server's default to the room behind the longest.
std::vector<std::vector<TokenId>> encode(const AnswerTools& tools, PromptEncoder& encoder,
                                         MegatronRequest& request) {
  std::vector<std::vector<TokenId>> prompts;
  std::int64_t longest = 0;
  for (const std::string& text : request.prompts) {
    std::vector<TokenId> ids = encoder.encode({text, {}}, true);
    const auto end = tools.model.end_of_document();
    if (request.add_bos && !text.empty() && end) {
      ids.insert(ids.begin(), *end);
    }
    longest = std::max<std::int64_t>(longest, std::ssize(ids));
    prompts.push_back(std::move(ids));
  }
  const std::int64_t capacity = tools.engine.options().capacity;
  if (request.cuts_length) {
    const std::int64_t most = std::min(capacity, tools.options.max_tokens / std::ssize(prompts));
    request.tokens_to_generate =
        std::clamp<std::int64_t>(most - longest, 1, request.tokens_to_generate);
  }
  if (longest > capacity || request.tokens_to_generate > capacity - longest) {
    throw ApiError(400, "Length of prompt + tokens_to_generate longer than allowed");
  }
  const std::int64_t all = std::ssize(prompts) * (longest + request.tokens_to_generate);
  if (all > tools.options.max_tokens) {
    throw ApiError(
        400, concat("Too many tokens.  ", all, " is greater than ", tools.options.max_tokens));
  }
  return prompts;
}

// Samples have their own options, which beams do not know.
EngineRequest beam_request(const AnswerTools& tools, const MegatronRequest& request,
                           std::vector<TokenId> prompt) {
  if (request.tokens_to_generate == 0) {
    throw ApiError(400, "tokens_to_generate must be an integer greater than 0");
  }
  return {.prompt = std::move(prompt),
          .max_tokens = request.tokens_to_generate,
          .eos_ids = request.stop_token ? std::vector<TokenId>{*request.stop_token}
                                        : tools.model.eos_ids(),
          .num_beams = *request.beam_width,
          .length_penalty = request.length_penalty};
}

}  // namespace

void answer_megatron(const AnswerTools& tools, PromptEncoder& encoder,
                     const std::shared_ptr<HttpExchange>& exchange) {
  MegatronRequest request =
      parse_megatron_request(exchange->request().body, tools.options.defaults);
  std::vector<std::vector<TokenId>> prompts = encode(tools, encoder, request);
  const std::uint64_t seed = request.random_seed ? static_cast<std::uint64_t>(*request.random_seed)
                                                 : std::random_device{}();
  const auto answer = std::make_shared<Answer>(tools, exchange, request.logprobs, prompts);
  std::vector<Engine::Submission> submissions;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    submissions.push_back({request.beam_width
                               ? beam_request(tools, request, std::move(prompts[i]))
                               : engine_request(tools, request, std::move(prompts[i]), seed,
                                                static_cast<std::int64_t>(i)),
                           std::make_shared<Answer::Listener>(answer, i)});
  }
  require_accepted(tools.engine.submit(std::move(submissions)));
}

}  // namespace bloomery
