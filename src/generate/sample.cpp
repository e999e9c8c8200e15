#include <map>

#include "generate/batch_sampler.h"
#include "generate/generator.h"
#include "generate/stop_text.h"

namespace bloomery {
namespace {

// One sequence on its way.
struct Running {
  std::int64_t room = 0;  // for new tokens
  StopText text;

  // Adds a token; `more` when the sequence goes on. Returns its text.
  std::string advance(const BatchSampler::Token& drawn, const GenerateOptions& options,
                      Generation& result, bool& more) {
    result.ids.push_back(drawn.token);
    result.log_probabilities.push_back(drawn.log_probability);
    const bool ended = options.is_end(drawn.token);
    std::string added = ended ? "" : text.push(drawn.token);
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

}  // namespace

std::vector<Generation> Generator::sample(std::span<const Request> requests,
                                          const OnText& on_text) {
  check(!requests.empty(), "generation: nothing was asked for");
  std::vector<Generation> results;
  std::vector<Running> running;
  std::vector<BatchSampler::Sequence> sequences;
  std::vector<std::vector<TokenId>> beginnings;
  beginnings.reserve(requests.size());  // sequences refer to them
  std::int64_t capacity = 1;
  for (const Request& request : requests) {
    const std::int64_t space = room(std::ssize(request.tokens), request.prompt);
    beginnings.push_back(beginning(request));
    // An empty one is refused when it is fed.
    const bool ends_unseen =
        !beginnings.back().empty() && beginnings.back().back() == options_.unseen;
    capacity = std::max(capacity, static_cast<std::int64_t>(beginnings.back().size()) + space - 1);
    running.push_back({.room = space, .text = {tokenizer_, options_.stops, continued(request)}});
    sequences.push_back({.number = sequences.size(),
                         .sampling = options_.sampling,
                         .key = draw_key(options_.sampling.seed, request.prompt, request.sample),
                         .tokens = beginnings.back(),
                         .room = space,
                         .forgets = ends_unseen});
    results.push_back({.prompt = request.prompt, .sample = request.sample});
  }
  const Prompts prompts(requests);
  Decoder decoder = make_decoder(static_cast<std::int64_t>(requests.size()), capacity);
  feed(decoder, prompts.tokens);
  decoder.select(prompts.of_request);
  BatchSampler tokens(decoder, options_.eos_ids, std::ssize(sequences));
  tokens.add_fed(sequences);
  while (!tokens.over()) {
    for (const BatchSampler::Token& drawn : tokens.next()) {
      bool more = false;
      const std::string text =
          running[drawn.sequence].advance(drawn, options_, results[drawn.sequence], more);
      if (on_text && !text.empty()) {
        on_text(drawn.sequence, text);
      }
      if (!more) {
        tokens.end(drawn.sequence);
      }
    }
  }
  return results;
}

}  // namespace bloomery
