#include "generate/prompt_beams.h"

#include <algorithm>
#include <cmath>

#include "ops/sampling/token_choice.h"

namespace bloomery {

PromptBeams::PromptBeams(const Tokenizer& tokenizer, const GenerateOptions& options,
                         std::vector<TokenId> begin, std::vector<TokenId> continued,
                         std::int64_t room)
    : tokenizer_(tokenizer),
      options_(options),
      begin_(std::move(begin)),
      continued_(std::move(continued)),
      room_(room),
      search_({.num_beams = options.num_beams,
               .max_length = room,
               .length_penalty = options.length_penalty,
               .num_ends = static_cast<std::int64_t>(options.eos_ids.size())}) {}

void PromptBeams::fill(Row& row, std::span<const float> logits, const Beam& beam) const {
  const auto total = static_cast<float>(log_sum_exp(logits));
  row.finite = std::isfinite(total);
  row.log_probabilities.resize(logits.size());
  for (std::size_t token = 0; token < logits.size(); ++token) {
    row.log_probabilities[token] = logits[token] - total;
  }
  row.scores = row.log_probabilities;
  const double penalty = options_.sampling.repetition_penalty;
  if (penalty == 1) {
    return;
  }
  std::vector<TokenId> occurred = begin_;
  occurred.insert(occurred.end(), beam.ids.begin(), beam.ids.end());
  std::sort(occurred.begin(), occurred.end());
  occurred.erase(std::unique(occurred.begin(), occurred.end()), occurred.end());
  for (const TokenId token : occurred) {
    float& score = row.scores[static_cast<std::size_t>(token)];
    score = penalized(score, static_cast<float>(penalty));
  }
}

std::vector<std::int64_t> PromptBeams::step(ThreadPool& pool, const Logits& logits) {
  const std::vector<Beam>& running = search_.running();
  rows_.resize(running.size());
  pool.for_each(std::ssize(running), [&](std::int64_t i) {
    const auto beam = static_cast<std::size_t>(i);
    fill(rows_[beam], logits(i), running[beam]);
  });
  std::vector<BeamScores> scores;
  for (const Row& row : rows_) {
    if (!row.finite) {
      fail_not_finite();
    }
    scores.push_back({row.scores, row.log_probabilities});
  }
  return search_.step(scores, [&](const Beam& beam) {
    return options_.is_end(beam.ids.back()) || (!options_.stops.empty() && text_of(beam).stopped());
  });
}

StopText PromptBeams::text_of(const Beam& beam) const {
  StopText text(tokenizer_, options_.stops, continued_);
  for (const TokenId token : beam.ids) {
    if (!options_.is_end(token)) {
      text.push(token);
    }
  }
  text.finish();
  return text;
}

std::vector<Generation> PromptBeams::results(std::int64_t count) const {
  std::vector<Generation> results;
  for (const Beam& beam : search_.finished()) {
    if (std::ssize(results) == count) {
      break;
    }
    const StopText text = text_of(beam);
    results.push_back({.sample = std::ssize(results),
                       .ids = beam.ids,
                       .log_probabilities = beam.log_probabilities,
                       .text = text.text(),
                       .finish = options_.is_end(beam.ids.back()) ? Finish::end
                                 : text.stopped()                 ? Finish::stop
                                                                  : options_.out_of_room(room_),
                       .score = beam.score});
  }
  return results;
}

}  // namespace bloomery
