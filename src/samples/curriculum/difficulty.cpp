#include "samples/curriculum/difficulty.h"

#include <algorithm>
#include <cmath>

#include "base/findings.h"
#include "base/round_up.h"

namespace bloomery {

// The operations of DeepSpeed in their order: the floor decides by the last bit.
std::int64_t DifficultySchedule::growing(std::int64_t step) const {
  const double share = std::pow(static_cast<double>(step) / static_cast<double>(total_steps),
                                1.0 / (kind == Kind::fixed_linear ? 1.0 : root));
  const double reached =
      std::floor(share * static_cast<double>(max - min) + static_cast<double>(min));
  if (reached >= static_cast<double>(max) + static_cast<double>(difficulty_step)) {
    return max;
  }
  auto found = static_cast<std::int64_t>(reached);
  found -= found % difficulty_step;
  if (never_below_min) {
    found = std::max(found, round_up(min, difficulty_step));
  }
  return std::min(found, max);
}

// DeepSpeed's order of tests, which matters where the steps do not ascend.
std::int64_t DifficultySchedule::listed(std::int64_t step) const {
  if (step > last_steps.back()) {
    return difficulties.back();
  }
  const auto found = std::ranges::find_if(last_steps, [&](auto last) { return step <= last; });
  return difficulties[static_cast<std::size_t>(found - last_steps.begin())];
}

std::int64_t DifficultySchedule::at(std::int64_t step) const {
  if (min >= max) {
    return min;
  }
  if (kind != Kind::fixed_discrete) {
    return growing(step);
  }
  std::vector<std::int64_t> changes = last_steps;  // between them it is constant
  std::ranges::sort(changes);
  changes.insert(changes.begin(), 0);
  for (const std::int64_t last : changes) {
    if (last < step && listed(last + 1) >= max) {
      return listed(last + 1);
    }
  }
  return listed(step);
}

std::int64_t DifficultySchedule::constant_from() const {
  if (min >= max) {
    return 0;
  }
  if (kind == Kind::fixed_discrete) {
    return std::ranges::max(last_steps) + 1;
  }
  constexpr std::int64_t kNever = std::int64_t{1} << 60;
  std::int64_t below = 0, enough = 1;
  while (enough < kNever && growing(enough) < max) {
    below = enough;
    enough *= 2;
  }
  while (enough - below > 1) {
    const std::int64_t middle = below + (enough - below) / 2;
    (growing(middle) < max ? below : enough) = middle;
  }
  return enough;
}

std::vector<std::int64_t> DifficultySchedule::values() const {
  if (min >= max) {
    return {min};
  }
  if (kind == Kind::fixed_discrete) {
    return difficulties;
  }
  std::vector<std::int64_t> all;
  for (std::int64_t value = growing(0); value < max; value += difficulty_step) {
    all.push_back(value);
  }
  all.push_back(max);
  return all;
}

std::vector<std::string> problems(const DifficultySchedule& s, const std::string& name) {
  constexpr std::int64_t kMost = 1'000'000'000'000;  // exact in a double, with room for products
  Findings f;
  f.require(s.min >= 1 && s.max >= s.min && s.max <= kMost, name, ": min_difficulty ", s.min,
            " and max_difficulty ", s.max, " must be whole numbers from 1 on, in this order");
  if (s.kind == DifficultySchedule::Kind::fixed_discrete) {
    f.require(!s.last_steps.empty() && s.difficulties.size() == s.last_steps.size() + 1, name,
              ": fixed_discrete needs max_step with at least one step and difficulty with one "
              "value more, not ",
              s.last_steps.size(), " and ", s.difficulties.size());
    f.require(std::ranges::all_of(s.difficulties, [](auto d) { return d >= 1 && d <= kMost; }),
              name, ": every difficulty must be a whole number from 1 on");
    return f.found;
  }
  f.require(s.total_steps >= 1 && s.total_steps <= kMost, name,
            ": total_curriculum_step must be from 1 on, not ", s.total_steps);
  f.require(s.difficulty_step >= 1 && s.difficulty_step <= kMost, name,
            ": difficulty_step must be from 1 on, not ", s.difficulty_step);
  f.require(s.kind == DifficultySchedule::Kind::fixed_linear || (s.root > 0 && s.root <= 64), name,
            ": root_degree must be above 0 and at most 64, not ", s.root);
  return f.found;
}

}  // namespace bloomery
