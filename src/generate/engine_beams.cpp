// Beam search among the work of the engine: a token of each beam between two steps of the others.
#include <algorithm>

#include "generate/engine.h"

namespace bloomery {

void Engine::start_beams(RequestIterator asked, const Tensor& logits) {
  const EngineRequest& request = asked->request;
  const GenerateOptions options{.max_new_tokens = request.max_tokens,
                                .sampling = request.sampling,
                                .num_beams = request.num_beams,
                                .length_penalty = request.length_penalty,
                                .stops = request.stops,
                                .ends = request.ends};
  asked->beams = std::make_unique<PromptBeams>(tokenizer_, options, request.prompt, request.prompt,
                                               request.max_tokens);
  asked->beam_slots = {asked->slots[0]};
  advance_beams(asked, logits);
}

bool Engine::beams_run() const {
  return std::any_of(asked_.begin(), asked_.end(),
                     [](const Request& asked) { return asked.beams != nullptr; });
}

// The beams of a prompt are a batch of their own, so that their numbers do not depend on others.
void Engine::step_beams() {
  for (auto asked = asked_.begin(); asked != asked_.end();) {
    const auto next = std::next(asked);
    if (asked->beams) {
      std::vector<Decoder::Piece> pieces;
      for (std::size_t i = 0; i < asked->beam_slots.size(); ++i) {
        const std::vector<TokenId>& ids = asked->beams->running()[i].ids;
        const std::size_t length = asked->request.prompt.size() + ids.size() - 1;
        pieces.push_back({.slot = asked->beam_slots[i],
                          .length = static_cast<std::int32_t>(length),
                          .tokens = {ids.back()}});
      }
      advance_beams(asked, decoder_.extend(pieces, false));
    }
    asked = next;
  }
}

// Logits of what follows each running beam decide which go on. A beam keeps the slot of the one it
// continues; where two continue one, the second gets a copy in a slot that nobody needs any more.
void Engine::advance_beams(RequestIterator asked, const Tensor& logits) {
  PromptBeams& beams = *asked->beams;
  const std::vector<float> numbers = decoder_.numbers(logits);
  const auto columns = static_cast<std::size_t>(logits.shape()[1]);
  const std::vector<std::int64_t> parents =
      beams.step(stream_.device().pool(), [&](std::int64_t i) {
        return std::span(numbers).subspan(static_cast<std::size_t>(i) * columns,
                                          static_cast<std::size_t>(vocabulary_));
      });
  status_.new_tokens += std::ssize(parents);
  if (beams.over()) {
    asked->listener->on_beams(beams.results(asked->request.num_beams));
    return release(asked);
  }
  std::vector<std::int32_t> free = asked->slots, slots;
  for (const std::int64_t parent : parents) {
    std::erase(free, asked->beam_slots[static_cast<std::size_t>(parent)]);
  }
  const std::size_t length = asked->request.prompt.size() + beams.running()[0].ids.size() - 1;
  for (const std::int64_t parent : parents) {
    std::int32_t slot = asked->beam_slots[static_cast<std::size_t>(parent)];
    if (std::find(slots.begin(), slots.end(), slot) != slots.end()) {
      decoder_.copy_slot(slot, free.back(), static_cast<std::int32_t>(length));
      slot = free.back();
      free.pop_back();
    }
    slots.push_back(slot);
  }
  asked->beam_slots = std::move(slots);
}

}  // namespace bloomery
