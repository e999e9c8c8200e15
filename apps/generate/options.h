// What a user says to `bloomery generate`.
#pragma once

#include "apps/common/command.h"
#include "apps/common/model_ranks.h"
#include "generate/generator.h"

namespace bloomery {

struct GenerateCommand : ModelStart {
  std::vector<std::string> prompts;
  std::string prompt_file;
  std::optional<std::int64_t> num_samples;
  GenerateOptions generate;
  std::int64_t seed = 1234;
  std::int64_t batch_size = 8;
  bool json = false;
  std::string genfile, sample_output_file;

  bool interactive() const {
    return prompts.empty() && prompt_file.empty() && num_samples.value_or(0) == 0;
  }
  std::int64_t samples_per_prompt() const {
    return std::max<std::int64_t>(1, num_samples.value_or(1));
  }
};

void describe(OptionTable& table, GenerateCommand& command);

// What contradicts what, in options that were read from the table.
std::vector<std::string> contradictions(const OptionTable& table, const GenerateCommand& command);

}  // namespace bloomery
