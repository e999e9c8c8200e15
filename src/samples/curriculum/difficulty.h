// DeepSpeed's curriculum schedules: how difficult samples may be by the step of training.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bloomery {

struct DifficultySchedule {
  enum class Kind { fixed_linear, fixed_root, fixed_discrete };

  Kind kind = Kind::fixed_linear;
  std::int64_t min = 0, max = 0;
  // Of fixed_linear and fixed_root: min + (step / total_steps)^(1 / root) (max - min), down to a
  // multiple of difficulty_step.
  std::int64_t total_steps = 0, difficulty_step = 0;
  double root = 1;
  // What lies below min is raised to the first multiple above it; random-LTD's are not.
  bool never_below_min = true;
  // Of fixed_discrete: the i-th difficulty until the i-th step, and the last one from there on.
  std::vector<std::int64_t> difficulties, last_steps;

  // A pure function of the step, counted as its user does. Once `max` is reached it stays.
  std::int64_t at(std::int64_t step) const;
  // The first step from which on it does not change.
  std::int64_t constant_from() const;
  // All values that it takes, at most as many as steps until it settles.
  std::vector<std::int64_t> values() const;

 private:
  std::int64_t growing(std::int64_t step) const;
  std::int64_t listed(std::int64_t step) const;
};

// What is wrong with its numbers; each line starts with `name`.
std::vector<std::string> problems(const DifficultySchedule& schedule, const std::string& name);

}  // namespace bloomery
