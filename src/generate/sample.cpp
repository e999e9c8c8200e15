#include <map>

#include "generate/generator.h"
#include "generate/stop_text.h"

namespace bloomery {
namespace {

// One sequence on its way.
struct Running {
  std::size_t index = 0;  // of its request
  std::int64_t room = 0;  // for new tokens
  TokenSampler sampler;
  StopText text;
  Choice choice{};

  // Adds the token that was chosen; `more` when the sequence goes on. Returns its text.
  std::string advance(const GenerateOptions& options, Generation& result, bool& more) {
    result.ids.push_back(choice.token);
    result.log_probabilities.push_back(choice.log_probability);
    const bool ended = options.is_end(choice.token);
    std::string added = ended ? "" : text.push(choice.token);
    more = !ended && !text.stopped() && static_cast<std::int64_t>(result.ids.size()) < room;
    if (!more) {
      added += text.finish();
      result.text = text.text();
      result.finish = ended            ? Finish::end
                      : text.stopped() ? Finish::stop
                                       : options.out_of_room(room);
    }
    return added;
  }
};
using RunningList = std::vector<std::unique_ptr<Running>>;

// The distinct prompts of the requests, and which of them each request has.
struct Prompts {
  std::vector<std::vector<TokenId>> tokens;
  std::vector<std::int64_t> of_request;

  explicit Prompts(std::span<const Request> requests) {
    std::map<std::int64_t, std::int64_t> places;
    for (const Request& request : requests) {
      check(!request.tokens.empty(), "generation: prompt ", request.prompt, " has no token");
      const auto next = static_cast<std::int64_t>(tokens.size());
      const auto [place, fresh] = places.emplace(request.prompt, next);
      if (fresh) {
        tokens.push_back(request.tokens);
      }
      of_request.push_back(place->second);
    }
  }
};

void choose_all(ThreadPool& pool, const Decoder& decoder, RunningList& running) {
  pool.for_each(static_cast<std::int64_t>(running.size()), [&](std::int64_t i) {
    Running& each = *running[static_cast<std::size_t>(i)];
    each.choice = each.sampler.choose(decoder.logits(i));
  });
}

// Keeps the sequences of these numbers, in order.
void keep(RunningList& running, std::span<const std::int64_t> numbers) {
  RunningList kept;
  for (const std::int64_t number : numbers) {
    kept.push_back(std::move(running[static_cast<std::size_t>(number)]));
  }
  running = std::move(kept);
}

}  // namespace

std::vector<Generation> Generator::sample(std::span<const Request> requests,
                                          const OnText& on_text) {
  check(!requests.empty(), "generation: nothing was asked for");
  std::vector<Generation> results;
  RunningList running;
  std::int64_t capacity = 1;
  for (const Request& request : requests) {
    const auto length = static_cast<std::int64_t>(request.tokens.size());
    const std::int64_t space = room(length, request.prompt);
    capacity = std::max(capacity, length + space - 1);
    running.push_back(std::make_unique<Running>(
        Running{.index = results.size(),
                .room = space,
                .sampler = {options_.sampling, request.prompt, request.sample},
                .text = {tokenizer_, options_.stops, request.tokens}}));
    for (const TokenId token : request.tokens) {
      running.back()->sampler.occurred(token);
    }
    results.push_back({.prompt = request.prompt, .sample = request.sample});
  }
  const Prompts prompts(requests);
  Decoder decoder = make_decoder(static_cast<std::int64_t>(requests.size()), capacity);
  decoder.feed(prompts.tokens);
  decoder.select(prompts.of_request);
  while (true) {
    choose_all(stream_.device().pool(), decoder, running);
    std::vector<std::int64_t> going;
    std::vector<std::vector<TokenId>> tokens;
    for (std::size_t i = 0; i < running.size(); ++i) {
      Running& each = *running[i];
      bool more = false;
      const std::string text = each.advance(options_, results[each.index], more);
      if (on_text && !text.empty()) {
        on_text(each.index, text);
      }
      if (more) {
        going.push_back(static_cast<std::int64_t>(i));
        tokens.push_back({each.choice.token});
      }
    }
    if (going.empty()) {
      return results;
    }
    if (going.size() < running.size()) {
      decoder.select(going);
      keep(running, going);
    }
    decoder.feed(tokens);
  }
}

}  // namespace bloomery
