// Beam search among the work of the engine: a token of each beam between two steps of the others.
#include <algorithm>

#include "generate/engine.h"

namespace bloomery {

void Engine::start_beams(RequestIterator entry, const Tensor& logits) {
  const EngineRequest& request = entry->request;
  const GenerateOptions options{.max_new_tokens = request.max_tokens,
                                .sampling = request.sampling,
                                .num_beams = request.num_beams,
                                .length_penalty = request.length_penalty,
                                .stops = request.stops,
                                .eos_ids = request.eos_ids};
  entry->beams = std::make_unique<PromptBeams>(tokenizer_, options, request.prompt, request.prompt,
                                               request.max_tokens);
  entry->beam_slots = {entry->slots[0]};
  advance_beams(entry, logits);
}

bool Engine::beams_run() const {
  return std::any_of(requests_.begin(), requests_.end(),
                     [](const Request& entry) { return entry.beams != nullptr; });
}

// The beams of a prompt are a batch of their own, so that their numbers do not depend on others.
void Engine::step_beams() {
  for (auto entry = requests_.begin(); entry != requests_.end();) {
    const auto next = std::next(entry);
    if (entry->beams) {
      std::vector<Decoder::Piece> pieces;
      for (std::size_t i = 0; i < entry->beam_slots.size(); ++i) {
        const std::vector<TokenId>& ids = entry->beams->running()[i].ids;
        const std::size_t length = entry->request.prompt.size() + ids.size() - 1;
        pieces.push_back({.slot = entry->beam_slots[i],
                          .length = static_cast<std::int32_t>(length),
                          .tokens = {ids.back()}});
      }
      advance_beams(entry, decoder_.extend(pieces, false));
    }
    entry = next;
  }
}

// Logits of what follows each running beam decide which go on. A beam keeps the slot of the one it
// continues; where two continue one, the second gets a copy in a slot that nobody needs any more.
void Engine::advance_beams(RequestIterator entry, const Tensor& logits) {
  PromptBeams& beams = *entry->beams;
  const std::vector<float> numbers = decoder_.numbers(logits);
  const auto columns = static_cast<std::size_t>(logits.shape()[1]);
  const std::vector<std::int64_t> parents =
      beams.step(stream_.device().pool(), [&](std::int64_t i) {
        return std::span(numbers).subspan(static_cast<std::size_t>(i) * columns,
                                          static_cast<std::size_t>(vocabulary_));
      });
  status_.new_tokens += std::ssize(parents);
  if (beams.over()) {
    entry->listener->on_beams(beams.results(entry->request.num_beams));
    return release(entry);
  }
  std::vector<std::int32_t> free = entry->slots, slots;
  for (const std::int64_t parent : parents) {
    std::erase(free, entry->beam_slots[static_cast<std::size_t>(parent)]);
  }
  const std::size_t length = entry->request.prompt.size() + beams.running()[0].ids.size() - 1;
  for (const std::int64_t parent : parents) {
    std::int32_t slot = entry->beam_slots[static_cast<std::size_t>(parent)];
    if (std::find(slots.begin(), slots.end(), slot) != slots.end()) {
      decoder_.copy_slot(slot, free.back(), static_cast<std::int32_t>(length));
      slot = free.back();
      free.pop_back();
    }
    slots.push_back(slot);
  }
  entry->beam_slots = std::move(slots);
}

}  // namespace bloomery
