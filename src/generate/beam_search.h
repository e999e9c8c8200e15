// Beam search over token scores, without a model: which continuations go on and which are finished.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "tokenizer/tokenizer.h"

namespace bloomery {

struct BeamOptions {
  std::int64_t num_beams = 1;
  std::int64_t max_length = 1;  // of a beam, in tokens
  double length_penalty = 1;    // a finished beam's score is divided by length^penalty
  std::int64_t num_ends = 1;    // how many tokens end a beam
};

struct Beam {
  std::vector<TokenId> ids;
  std::vector<float> log_probabilities;
  double score = 0;  // sum of scores; of a finished beam divided by length^penalty
};

// What may follow one beam: scores decide, log-probabilities are only recorded. Both are indexed
// by token.
struct BeamScores {
  std::span<const float> scores, log_probabilities;
};

// The search of Hugging Face's generate with early_stopping=False, for one prompt. In each step the
// best max(2, 1 + num_ends) * num_beams continuations of the running beams are looked at. Those
// that end are finished if they are among the best num_beams; the best num_beams others go on. It
// is over when num_beams are finished and no running beam scores better now than the worst of them.
class BeamSearch {
 public:
  explicit BeamSearch(const BeamOptions& options);

  const std::vector<Beam>& running() const { return running_; }  // at first one, empty
  bool over() const { return over_; }

  // Continues the running beams. `ends` says whether a continued beam has ended, besides by its
  // length. Returns for each beam that runs now the number of the one it continues.
  std::vector<std::int64_t> step(std::span<const BeamScores> continuations,
                                 const std::function<bool(const Beam&)>& ends);

  // Best first, at most num_beams.
  const std::vector<Beam>& finished() const { return finished_; }

 private:
  struct Candidate {
    double score;
    std::int64_t beam;
    TokenId token;
  };
  std::vector<Candidate> best(std::span<const BeamScores> continuations) const;
  Beam continued(const Candidate& candidate, const BeamScores& scores) const;
  void finish(Beam beam);

  BeamOptions options_;
  std::vector<Beam> running_, finished_;
  bool over_ = false;
};

}  // namespace bloomery
