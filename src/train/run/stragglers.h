// Finds ranks that compute slower than others of the same work: everybody waits for them in every
// step, so the times of whole steps do not show which ones they are.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "train/step/rank.h"

namespace bloomery {

class Stragglers {
 public:
  // `percent`: a rank that needs so much more than the median is one. Collective.
  Stragglers(Rank& rank, std::int64_t percent);

  void add(const Rank::Outcome& step);
  // Of the steps since the last report; collective. On the first rank a warning of the slowest, if
  // it is a straggler among the ranks of its pipeline stage, else and elsewhere an empty text.
  std::string report();
  // At the end: who was one how often; empty if nobody was.
  std::string summary() const;

 private:
  std::string find_slow(const std::vector<std::vector<double>>& ranks);

  Rank& rank_;
  const std::int64_t percent_;
  std::vector<std::string> hosts_;
  double seconds_ = 0;  // of steps, less what they waited for sums of gradients
  double calls_ = 0;    // seconds in other calls until the last report
  std::int64_t steps_ = 0, reports_ = 0;
  std::map<int, int> times_;  // that a rank was one
};

}  // namespace bloomery
