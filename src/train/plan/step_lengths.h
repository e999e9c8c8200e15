// How many tokens of its samples a step trains on, as a function of its number: what a curriculum
// of sequence lengths and random-LTD leave of --seq-length.
#pragma once

#include <cstdint>
#include <optional>

#include "samples/curriculum/difficulty.h"
#include "train/plan/batch_size.h"

namespace bloomery {

// Random-LTD: of `num_layers` of the model's layers each computes some tokens alone.
struct KeptTokens {
  DifficultySchedule schedule;  // how many, by the step from 0 on
  std::int64_t num_layers = 0, total_layers = 1;
};

struct StepLengths {
  std::int64_t full = 1;                         // --seq-length
  std::int64_t sequences = 1;                    // of a sample: a pair, or choices
  std::int64_t micro_batch = 1;                  // sequences of which rows are cut
  std::optional<DifficultySchedule> curriculum;  // of the length; none: it is the full one
  bool reshape = false;  // samples are cut into rows of that length instead of losing their end

  std::optional<KeptTokens> kept_tokens;

  // Of step number `iteration`, from 1 on.
  std::int64_t length(std::int64_t iteration) const;
  // Tokens that the layers of random-LTD compute of each sequence; 0: all.
  std::int64_t kept(std::int64_t iteration) const;
  // What Megatron-DeepSpeed counts and logs as the length.
  std::int64_t counted_length(std::int64_t iteration) const;
  // Tokens that a step of so many samples counts as.
  std::int64_t tokens(std::int64_t iteration, std::int64_t samples) const;
  // The first step from which on nothing changes.
  std::int64_t constant_from() const;
};

struct RunLength {
  std::int64_t iterations = 0, samples = 0, tokens = 0;
};
// Of a run that takes at most so many steps and none once it has counted `most_tokens`.
RunLength run_length(const StepLengths& lengths, const BatchSize& batch,
                     std::int64_t most_iterations, std::optional<std::int64_t> most_tokens);

}  // namespace bloomery
