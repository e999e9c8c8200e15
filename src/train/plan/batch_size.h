// The global batch size as a function of the samples trained on so far: constant, or growing in
// equal steps as Megatron's --rampup-batch-size has it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace bloomery {

struct Rampup {
  std::int64_t start = 1, increment = 1, samples = 0;
};

class BatchSize {
 public:
  BatchSize(std::int64_t global, std::optional<Rampup> rampup);

  std::int64_t global() const { return global_; }
  std::int64_t at(std::int64_t consumed_samples) const;
  // Steps that fit into so many samples; a last batch that is not full does not count.
  std::int64_t num_iterations(std::int64_t samples) const;
  // Samples of the first steps.
  std::int64_t num_samples(std::int64_t iterations) const;

  // A run of steps with one batch size.
  struct Stage {
    std::int64_t batch = 0, first_sample = 0;
    std::int64_t iterations = 0;  // 0 for the last: as long as training goes on
  };
  std::vector<Stage> stages() const;

 private:
  std::int64_t global_;
  std::optional<Rampup> rampup_;
  double samples_per_increment_ = 0;
};

// What is wrong with these numbers for so many samples at once (micro-batch x ranks).
std::vector<std::string> batch_problems(std::int64_t global, const std::optional<Rampup>& rampup,
                                        std::int64_t at_once);

}  // namespace bloomery
