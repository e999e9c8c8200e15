#include <algorithm>

#include "generate/beam_search.h"
#include "generate/generator.h"
#include "generate/stop_text.h"
#include "ops/sampling/token_choice.h"

namespace bloomery {
namespace {

// Log-probabilities and scores of what may follow each running beam.
class ScoreRows {
 public:
  // Scores are log-probabilities with the repetition penalty applied to tokens of prompt and beam.
  void compute(ThreadPool& pool, Decoder& decoder, const BeamSearch& search,
               std::span<const TokenId> prompt, double penalty) {
    const std::size_t count = search.running().size();
    logs_.resize(count);
    scores_.resize(count);
    decoder.logits(0);  // waits once, before the threads ask
    pool.for_each(static_cast<std::int64_t>(count), [&](std::int64_t i) {
      const auto beam = static_cast<std::size_t>(i);
      const std::span<const float> logits = decoder.logits(i);
      const auto total = static_cast<float>(log_sum_exp(logits));
      logs_[beam].resize(logits.size());
      for (std::size_t token = 0; token < logits.size(); ++token) {
        logs_[beam][token] = logits[token] - total;
      }
      scores_[beam] = logs_[beam];
      if (penalty != 1) {
        std::vector<TokenId> occurred(prompt.begin(), prompt.end());
        const std::vector<TokenId>& ids = search.running()[beam].ids;
        occurred.insert(occurred.end(), ids.begin(), ids.end());
        std::sort(occurred.begin(), occurred.end());
        occurred.erase(std::unique(occurred.begin(), occurred.end()), occurred.end());
        for (const TokenId token : occurred) {
          float& score = scores_[beam][static_cast<std::size_t>(token)];
          score = penalized(score, static_cast<float>(penalty));
        }
      }
    });
  }
  std::vector<BeamScores> rows() const {
    std::vector<BeamScores> rows;
    for (std::size_t i = 0; i < logs_.size(); ++i) {
      rows.push_back({scores_[i], logs_[i]});
    }
    return rows;
  }

 private:
  std::vector<std::vector<float>> logs_, scores_;
};

}  // namespace

std::vector<Generation> Generator::beams(const Request& request, std::int64_t count) {
  check(!request.tokens.empty(), "generation: prompt ", request.prompt, " has no token");
  check(count >= 1 && count <= options_.num_beams, count, " results of ", options_.num_beams,
        " beams; there can be from 1 to as many as beams");
  const std::vector<TokenId> begin = beginning(request);
  const std::int64_t space = room(static_cast<std::int64_t>(request.tokens.size()), request.prompt);
  BeamSearch search({.num_beams = options_.num_beams,
                     .max_length = space,
                     .length_penalty = options_.length_penalty,
                     .num_ends = static_cast<std::int64_t>(options_.ends.size())});
  const auto text_of = [&](const Beam& beam) {
    StopText text(tokenizer_, options_.stops, continued(request));
    for (const TokenId token : beam.ids) {
      if (!options_.is_end(token)) {
        text.push(token);
      }
    }
    text.finish();
    return text;
  };
  const auto ends = [&](const Beam& beam) {
    return options_.is_end(beam.ids.back()) || (!options_.stops.empty() && text_of(beam).stopped());
  };

  Decoder decoder = make_decoder(options_.num_beams, std::ssize(begin) + space - 1);
  feed(decoder, {request.tokens});
  ScoreRows scores;
  while (true) {
    scores.compute(stream_.device().pool(), decoder, search, begin,
                   options_.sampling.repetition_penalty);
    const std::vector<std::int64_t> parents = search.step(scores.rows(), ends);
    if (search.over()) {
      break;
    }
    decoder.select(parents);
    std::vector<std::vector<TokenId>> tokens;
    for (const Beam& beam : search.running()) {
      tokens.push_back({beam.ids.back()});
    }
    decoder.feed(tokens);
  }

  std::vector<Generation> results;
  for (const Beam& beam : search.finished()) {
    if (static_cast<std::int64_t>(results.size()) == count) {
      break;
    }
    const StopText text = text_of(beam);
    results.push_back({.prompt = request.prompt,
                       .sample = static_cast<std::int64_t>(results.size()),
                       .ids = beam.ids,
                       .log_probabilities = beam.log_probabilities,
                       .text = text.text(),
                       .finish = options_.is_end(beam.ids.back()) ? Finish::end
                                 : text.stopped()                 ? Finish::stop
                                                                  : options_.out_of_room(space),
                       .score = beam.score});
  }
  return results;
}

}  // namespace bloomery
