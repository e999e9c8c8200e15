#include "generate/beam_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace bloomery {
namespace {

constexpr int kVocabulary = 5;
constexpr TokenId kEnd = 4;

// What follows `ids` in a random language: log-probabilities that depend on all of them.
std::vector<float> language(const std::vector<TokenId>& ids, std::uint64_t seed) {
  std::string name = "language";
  for (const TokenId id : ids) {
    name += static_cast<char>('0' + id);
  }
  const RandomKey key = random_key(seed, name);
  std::vector<double> weights;
  double sum = 0;
  for (std::uint64_t i = 0; i < kVocabulary; ++i) {
    weights.push_back(std::exp(1.5 * random_normal(key, i)));
    sum += weights.back();
  }
  std::vector<float> logs;
  for (const double weight : weights) {
    logs.push_back(static_cast<float>(std::log(weight / sum)));
  }
  return logs;
}

bool is_over(const Beam& beam) { return beam.ids.back() == kEnd; }

std::vector<Beam> search(const BeamOptions& options, std::uint64_t seed) {
  BeamSearch search(options);
  while (!search.over()) {
    std::vector<std::vector<float>> rows;
    std::vector<BeamScores> scores;
    for (const Beam& beam : search.running()) {
      rows.push_back(language(beam.ids, seed));
    }
    for (const std::vector<float>& row : rows) {
      scores.push_back({row, row});
    }
    const std::vector<Beam> before = search.running();
    const std::vector<std::int64_t> parents = search.step(scores, is_over);
    EXPECT_EQ(parents.size(), search.running().size());
    for (std::size_t i = 0; i < parents.size(); ++i) {
      std::vector<TokenId> ids = search.running()[i].ids;
      ids.pop_back();
      EXPECT_EQ(ids, before[static_cast<std::size_t>(parents[i])].ids);
    }
  }
  return search.finished();
}

// Every sequence that ends, by its token or by its length, with its score.
void enumerate(const BeamOptions& options, std::uint64_t seed, const Beam& beam,
               std::vector<Beam>& all) {
  const std::vector<float> logs = language(beam.ids, seed);
  for (TokenId token = 0; token < kVocabulary; ++token) {
    Beam next = beam;
    next.ids.push_back(token);
    next.score += logs[static_cast<std::size_t>(token)];
    const auto length = static_cast<std::int64_t>(next.ids.size());
    if (token == kEnd || length == options.max_length) {
      next.score /= std::pow(static_cast<double>(length), options.length_penalty);
      all.push_back(next);
    } else {
      enumerate(options, seed, next, all);
    }
  }
}

TEST(BeamSearch, WideBeamsFindWhatExhaustiveSearchFinds) {
  for (const double penalty : {0.0, 1.0, 2.0, -0.5}) {
    for (std::uint64_t seed = 1; seed <= 6; ++seed) {
      const BeamOptions options{.num_beams = 400, .max_length = 4, .length_penalty = penalty};
      std::vector<Beam> all;
      enumerate(options, seed, {}, all);
      std::sort(all.begin(), all.end(),
                [](const Beam& a, const Beam& b) { return a.score > b.score; });
      const std::vector<Beam> found = search(options, seed);
      ASSERT_EQ(found.size(), std::min<std::size_t>(400, all.size()));
      for (std::size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(found[i].ids, all[i].ids) << i;
        EXPECT_NEAR(found[i].score, all[i].score, 1e-9) << i;
      }
    }
  }
}

TEST(BeamSearch, OneBeamIsGreedyUntilItEnds) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    const std::vector<Beam> found = search({.num_beams = 1, .max_length = 6}, seed);
    std::vector<TokenId> greedy;
    while (greedy.size() < 6 && (greedy.empty() || greedy.back() != kEnd)) {
      const std::vector<float> logs = language(greedy, seed);
      greedy.push_back(
          static_cast<TokenId>(std::max_element(logs.begin(), logs.end()) - logs.begin()));
    }
    ASSERT_EQ(found.size(), 1u);
    EXPECT_EQ(found[0].ids, greedy);
    EXPECT_EQ(found[0].log_probabilities.size(), greedy.size());
  }
}

TEST(BeamSearch, StopsWhenNoBeamCanImprove) {
  // The end is so likely that the first step finishes it; the second best ends the search.
  BeamSearch search({.num_beams = 1, .max_length = 100});
  const std::vector<float> logs = {-5, -6, -7, -8, -0.01f};
  search.step(std::vector<BeamScores>{{logs, logs}}, is_over);
  EXPECT_TRUE(search.over());
  ASSERT_EQ(search.finished().size(), 1u);
  EXPECT_EQ(search.finished()[0].ids, (std::vector<TokenId>{kEnd}));
}

TEST(BeamSearch, FinishesOnlyAmongTheBestBeams) {
  // The end is the third candidate of two beams: it is not taken.
  BeamSearch search({.num_beams = 2, .max_length = 9});
  const std::vector<float> logs = {-1, -2, -9, -8, -3};
  const auto parents = search.step(std::vector<BeamScores>{{logs, logs}}, is_over);
  EXPECT_TRUE(search.finished().empty());
  EXPECT_EQ(parents, (std::vector<std::int64_t>{0, 0}));
  EXPECT_EQ(search.running()[1].ids, (std::vector<TokenId>{1}));
}

}  // namespace
}  // namespace bloomery
