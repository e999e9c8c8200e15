// What a step of the engine computes: a piece of the prompts that wait, and a token of each
// sequence.
#include <algorithm>
#include <cmath>

#include "generate/engine.h"
#include "ops/sampling/token_choice.h"

namespace bloomery {
namespace {

bool is_computed(const EngineRequest& request, std::int64_t computed) {
  return computed == std::ssize(request.prompt);
}

std::vector<Drawn> first_of(std::span<const Drawn> all, std::int64_t count) {
  std::vector<Drawn> first(all.begin(), all.begin() + count);
  std::erase_if(first, [](const Drawn& each) { return each.token < 0; });
  return first;
}

}  // namespace

bool Engine::prompt_waits() const {
  return std::any_of(requests_.begin(), requests_.end(), [](const Request& entry) {
    return !is_computed(entry.request, entry.computed);
  });
}

// The next pieces of the oldest prompts, as many as fit when all are padded to the longest; those
// that go on with a prompt alone, so that its numbers do not depend on others. Prompts
// that are scored have logits for every token, which takes memory, so that their pieces are
// shorter.
std::vector<Engine::RequestIterator> Engine::choose_pieces(std::vector<Decoder::Piece>& pieces) {
  std::vector<RequestIterator> chosen;
  std::int64_t longest = 0, budget = options_.prefill_chunk;
  for (auto entry = requests_.begin(); entry != requests_.end(); ++entry) {
    const EngineRequest& request = entry->request;
    if (is_computed(request, entry->computed)) {
      continue;
    }
    if (chosen.empty() && request.score_prompt) {
      budget = std::max<std::int64_t>(1, budget / 4);
    }
    const std::int64_t count = std::min(std::ssize(request.prompt) - entry->computed, budget);
    const std::int64_t length = std::max(longest, count);
    const bool alike = chosen.empty() || (chosen[0]->request.score_prompt == request.score_prompt &&
                                          chosen[0]->computed == 0 && entry->computed == 0);
    if (!alike || length * (std::ssize(chosen) + 1) > budget) {
      continue;
    }
    longest = length;
    chosen.push_back(entry);
    const auto begin = request.prompt.begin() + entry->computed;
    pieces.push_back({.slot = entry->slots[0],
                      .length = static_cast<std::int32_t>(entry->computed),
                      .tokens = {begin, begin + count}});
  }
  return chosen;
}

void Engine::compute_prompts() {
  std::vector<Decoder::Piece> pieces;
  const std::vector<RequestIterator> chosen = choose_pieces(pieces);
  const bool scored = chosen[0]->request.score_prompt;
  for (const RequestIterator& entry : chosen) {
    for (std::size_t i = 0; entry->computed == 0 && i < entry->slots.size(); ++i) {
      decoder_.set_pages(entry->slots[i], entry->pages[i]);
    }
  }
  const Tensor logits = decoder_.extend(pieces, scored);
  const std::int64_t columns = logits.shape()[1];
  const std::int64_t rows_of_piece = scored ? logits.shape()[0] / std::ssize(pieces) : 1;
  const std::vector<float> numbers = scored ? decoder_.numbers(logits) : std::vector<float>();
  std::vector<BatchSampler::Sequence> joining;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    Request& entry = *chosen[i];
    const auto first = static_cast<std::int64_t>(i) * rows_of_piece;
    const std::int64_t count = std::ssize(pieces[i].tokens);
    if (scored) {
      score(entry, std::span(numbers).subspan(static_cast<std::size_t>(first * columns)), columns,
            pieces[i].tokens);
    }
    entry.computed += count;
    status_.prompt_tokens += count;
    if (is_computed(entry.request, entry.computed)) {
      start(chosen[i], logits, scored ? first + count - 1 : first, joining);
    }
  }
  if (!joining.empty()) {
    drawn_->add(joining, logits);
  }
}

// Row i of the logits is about the token that follows token i of the piece.
void Engine::score(Request& entry, std::span<const float> logits, std::int64_t columns,
                   std::span<const TokenId> piece) {
  std::vector<ScoredToken>& scores = entry.scores;
  const std::vector<TokenId>& prompt = entry.request.prompt;
  if (scores.empty()) {
    scores.push_back({.token = prompt[0], .log_probability = NAN, .alternatives = {}});
  }
  const std::size_t known = scores.size();
  const std::size_t count = std::min(piece.size(), prompt.size() - known);
  scores.resize(known + count);
  stream_.device().pool().for_each(static_cast<std::int64_t>(count), [&](std::int64_t i) {
    const auto row = logits.subspan(static_cast<std::size_t>(i * columns),
                                    static_cast<std::size_t>(vocabulary_));
    ScoredToken& scored = scores[known + static_cast<std::size_t>(i)];
    scored.token = prompt[known + static_cast<std::size_t>(i)];
    scored.log_probability =
        static_cast<float>(row[static_cast<std::size_t>(scored.token)] - log_sum_exp(row));
    scored.alternatives.resize(static_cast<std::size_t>(entry.request.num_alternatives));
    top_tokens(row, scored.alternatives);
  });
}

// The prompt is computed: its samples or beams begin.
void Engine::start(RequestIterator entry, const Tensor& logits, std::int64_t logit_row,
                   std::vector<BatchSampler::Sequence>& joining) {
  const EngineRequest& request = entry->request;
  if (request.num_beams > 0) {
    return start_beams(entry, logits.range(logit_row * logits.shape()[1], {1, logits.shape()[1]}));
  }
  if (request.score_prompt) {
    entry->listener->on_prompt(std::move(entry->scores));
  }
  if (request.max_tokens == 0) {
    for (std::int64_t sample = 0; sample < request.num_samples; ++sample) {
      entry->listener->on_end(sample, Finish::length, "");
    }
    return release(entry);
  }
  const auto length = static_cast<std::int32_t>(request.prompt.size());
  for (std::int64_t sample = 0; sample < request.num_samples; ++sample) {
    const std::int32_t slot = entry->slots[static_cast<std::size_t>(sample)];
    if (sample > 0) {
      decoder_.copy_slot(entry->slots[0], slot, length);
    }
    const std::size_t number = next_number_++;
    running_.emplace(number, Running{.entry = entry,
                                     .sample = sample,
                                     .slot = slot,
                                     .text = StopText(tokenizer_, request.stops, request.prompt,
                                                      request.skip_special)});
    joining.push_back({.number = number,
                       .sampling = request.sampling,
                       .key = draw_key(request.sampling.seed, request.prompt_number, sample),
                       .tokens = request.prompt,
                       .room = request.max_tokens,
                       .biases = request.biases,
                       .alternatives = request.num_alternatives > 0,
                       .forgets = request.mask_prompt,
                       .slot = slot,
                       .length = length,
                       .logit_row = logit_row});
  }
}

void Engine::take(const BatchSampler::Token& drawn) {
  const auto place = running_.find(drawn.sequence);
  Running& running = place->second;
  const EngineRequest& request = running.entry->request;
  EngineListener& listener = *running.entry->listener;
  ++running.count;
  ++status_.new_tokens;
  const bool ended = std::find(request.eos_ids.begin(), request.eos_ids.end(), drawn.token) !=
                     request.eos_ids.end();
  const std::string text = ended ? "" : running.text.push(drawn.token);
  listener.on_token(running.sample,
                    {.token = drawn.token,
                     .log_probability = drawn.log_probability,
                     .alternatives = request.num_alternatives > 0
                                         ? first_of(drawn.alternatives, request.num_alternatives)
                                         : std::vector<Drawn>()},
                    text);
  if (!ended && !running.text.stopped() && running.count < request.max_tokens) {
    return;
  }
  const std::string rest = running.text.finish();
  listener.on_end(running.sample,
                  ended                    ? Finish::end
                  : running.text.stopped() ? Finish::stop
                                           : Finish::length,
                  rest);
  end(drawn.sequence);
}

// A sample is done; the request's slots are free when its last one is.
void Engine::end(std::size_t number) {
  const auto place = running_.find(number);
  const RequestIterator entry = place->second.entry;
  drawn_->end(number);
  running_.erase(place);
  if (--entry->num_going == 0) {
    release(entry);
  }
}

}  // namespace bloomery
