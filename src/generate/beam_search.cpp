#include "generate/beam_search.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace bloomery {

BeamSearch::BeamSearch(const BeamOptions& options) : options_(options), running_(1) {
  check(options.num_beams >= 1 && options.max_length >= 1, "beam search with ", options.num_beams,
        " beams of at most ", options.max_length, " tokens; both must be at least 1");
}

std::vector<BeamSearch::Candidate> BeamSearch::best(
    std::span<const BeamScores> continuations) const {
  const auto wanted = static_cast<std::size_t>(std::max<std::int64_t>(2, 1 + options_.num_ends) *
                                               options_.num_beams);
  const auto better = [](const Candidate& a, const Candidate& b) {
    return a.score != b.score ? a.score > b.score
                              : std::pair(a.beam, a.token) < std::pair(b.beam, b.token);
  };
  std::vector<Candidate> all, of_beam;
  for (std::size_t beam = 0; beam < continuations.size(); ++beam) {
    const std::span<const float> scores = continuations[beam].scores;
    of_beam.clear();
    for (std::size_t token = 0; token < scores.size(); ++token) {
      of_beam.push_back({running_[beam].score + scores[token], static_cast<std::int64_t>(beam),
                         static_cast<TokenId>(token)});
    }
    const auto end =
        of_beam.begin() + static_cast<std::ptrdiff_t>(std::min(wanted, of_beam.size()));
    std::partial_sort(of_beam.begin(), end, of_beam.end(), better);
    all.insert(all.end(), of_beam.begin(), end);
  }
  std::sort(all.begin(), all.end(), better);
  all.resize(std::min(wanted, all.size()));
  return all;
}

Beam BeamSearch::continued(const Candidate& candidate, const BeamScores& scores) const {
  Beam beam = running_[static_cast<std::size_t>(candidate.beam)];
  beam.ids.push_back(candidate.token);
  beam.log_probabilities.push_back(
      scores.log_probabilities[static_cast<std::size_t>(candidate.token)]);
  beam.score = candidate.score;
  return beam;
}

void BeamSearch::finish(Beam beam) {
  beam.score /= std::pow(static_cast<double>(beam.ids.size()), options_.length_penalty);
  const auto place =
      std::upper_bound(finished_.begin(), finished_.end(), beam,
                       [](const Beam& a, const Beam& b) { return a.score > b.score; });
  finished_.insert(place, std::move(beam));
  if (static_cast<std::int64_t>(finished_.size()) > options_.num_beams) {
    finished_.pop_back();
  }
}

std::vector<std::int64_t> BeamSearch::step(std::span<const BeamScores> continuations,
                                           const std::function<bool(const Beam&)>& ends) {
  check(!over_ && continuations.size() == running_.size(), "beam search: scores for ",
        continuations.size(), " beams, but ", over_ ? 0 : running_.size(), " run");
  const auto num_beams = static_cast<std::size_t>(options_.num_beams);
  const std::vector<Candidate> candidates = best(continuations);
  std::vector<Beam> next;
  std::vector<std::int64_t> parents;
  for (std::size_t rank = 0; rank < candidates.size(); ++rank) {
    const Candidate& candidate = candidates[rank];
    Beam beam = continued(candidate, continuations[static_cast<std::size_t>(candidate.beam)]);
    if (static_cast<std::int64_t>(beam.ids.size()) == options_.max_length || ends(beam)) {
      if (rank < num_beams) {
        finish(std::move(beam));
      }
    } else if (next.size() < num_beams) {
      next.push_back(std::move(beam));
      parents.push_back(candidate.beam);
    }
  }
  running_ = std::move(next);
  if (running_.empty()) {
    over_ = true;
  } else if (finished_.size() == num_beams) {
    const auto length = static_cast<double>(running_[0].ids.size());
    over_ = running_[0].score / std::pow(length, options_.length_penalty) <= finished_.back().score;
  }
  return parents;
}

}  // namespace bloomery
