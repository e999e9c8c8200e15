// OpenAI's completions and chats.
#include <random>

#include "serve/api_error.h"
#include "serve/service.h"
#include "serve/text_answer.h"

namespace bloomery {
namespace {

std::uint64_t random_seed() {
  thread_local std::mt19937_64 numbers{std::random_device{}()};
  return numbers();
}

// How many tokens may follow a prompt: what was asked for; else the server's default, cut to the
// room; else, in a chat, all there is room for.
std::int64_t tokens_to_follow(const TextRequest& request, const RequestDefaults& defaults,
                              std::int64_t prompt, std::int64_t capacity) {
  const std::int64_t room = std::max<std::int64_t>(1, capacity - prompt);
  const std::int64_t otherwise = defaults.max_tokens ? std::min(*defaults.max_tokens, room)
                                 : request.chat      ? room
                                                     : 16;
  const std::int64_t wanted = request.max_tokens.value_or(otherwise);
  if (prompt > capacity || wanted > capacity - prompt) {
    throw ApiError(
        400,
        concat("this model's maximum context length is ", capacity, " tokens, but the prompt has ",
               prompt, " and ", wanted, " are to follow: shorten the prompt or ask for fewer"),
        request.chat ? "messages" : "prompt", "context_length_exceeded");
  }
  return wanted;
}

EngineRequest engine_request(const AnswerTools& tools, const TextRequest& request,
                             std::vector<TokenId> prompt) {
  const std::int64_t follow = tokens_to_follow(request, tools.options.defaults, std::ssize(prompt),
                                               tools.engine.options().capacity);
  EngineRequest to_engine{.prompt = std::move(prompt),
                          .max_tokens = follow,
                          .num_samples = request.num_samples,
                          .sampling = request.sampling,
                          .biases = request.biases,
                          .stops = request.stops,
                          .eos_ids = request.stop_tokens,
                          .num_alternatives = request.logprobs.value_or(0),
                          .score_prompt = request.echo && request.logprobs.has_value(),
                          .skip_special = request.skip_special_tokens};
  to_engine.mask_prompt = tools.model.forgets(to_engine.prompt);
  if (!request.ignore_eos) {
    const std::vector<TokenId>& eos_ids = tools.model.eos_ids();
    to_engine.eos_ids.insert(to_engine.eos_ids.end(), eos_ids.begin(), eos_ids.end());
  }
  return to_engine;
}

// Each is kept until the answer is sent.
void require_bounded_logprobs(const TextRequest& request, std::span<const EngineRequest> prompts) {
  if (!request.logprobs) {
    return;
  }
  std::int64_t count = 0;
  for (const EngineRequest& prompt : prompts) {
    const std::int64_t tokens =
        prompt.max_tokens + (prompt.score_prompt ? std::ssize(prompt.prompt) : 0);
    count += tokens * prompt.num_samples * (1 + prompt.num_alternatives);
  }
  if (count > TextRequest::kMostLogprobs) {
    throw ApiError(
        400,
        concat("this would be ", count, " log-probabilities (tokens x n x (1 + logprobs)), there ",
               "may be ", TextRequest::kMostLogprobs,
               ": ask for fewer of them, a smaller n, fewer "
               "tokens or fewer prompts"),
        request.chat ? "top_logprobs" : "logprobs");
  }
}

}  // namespace

void answer_text(const AnswerTools& tools, PromptEncoder& encoder,
                 const std::shared_ptr<HttpExchange>& exchange, bool chat) {
  TextRequest request = parse_text_request(exchange->request().body, chat, tools.options.defaults);
  if (!request.model.empty() && request.model != tools.model.name()) {
    throw ApiError(404,
                   concat("there is no model ", request.model, " here, but ", tools.model.name()),
                   "model", "model_not_found");
  }
  if (!request.has_seed) {
    request.sampling.seed = random_seed();
  }
  std::vector<EngineRequest> to_engine;
  std::vector<TextAnswer::PromptFacts> facts;
  const auto add = [&](std::vector<TokenId> ids, const TextPrompt& prompt) {
    facts.push_back({.text = !request.echo        ? ""
                             : prompt.ids.empty() ? prompt.text
                                                  : tools.model.tokenizer().decode(ids),
                     .num_tokens = std::ssize(ids)});
    to_engine.push_back(engine_request(tools, request, std::move(ids)));
    to_engine.back().prompt_number = std::ssize(to_engine) - 1;
  };
  if (chat) {
    add(encoder.encode_chat(request.messages, request.tools), {});
  }
  for (const TextPrompt& prompt : request.prompts) {
    add(encoder.encode(prompt, request.add_special_tokens), prompt);
  }
  require_bounded_logprobs(request, to_engine);
  const auto time = std::chrono::duration_cast<TextAnswer::Clock::duration>(
      std::chrono::duration<double>(tools.options.request_seconds));
  const auto answer = std::make_shared<TextAnswer>(exchange, request, std::move(facts), tools.model,
                                                   tools.metrics, TextAnswer::Clock::now() + time);
  std::vector<Engine::Submission> submissions;
  for (std::size_t i = 0; i < to_engine.size(); ++i) {
    submissions.push_back({std::move(to_engine[i]), answer->listener(i)});
  }
  require_accepted(tools.engine.submit(std::move(submissions)));
  if (request.stream) {
    exchange->stream("text/event-stream; charset=utf-8", answer);
  }
}

}  // namespace bloomery
