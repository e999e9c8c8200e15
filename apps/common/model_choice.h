// Which model, where and in what: the options of the commands that run one.
#pragma once

#include <optional>
#include <string>

#include "apps/common/command.h"
#include "apps/common/device_choice.h"
#include "config/option_table.h"
#include "generate/loaded_model.h"

namespace bloomery {

struct ModelChoice {
  std::string load, dtype = "auto";
  TokenizerOptions tokenizer;
  DeviceChoice device;
  // What a script of Megatron's says about the model, which the checkpoint knows: must agree.
  std::optional<std::int64_t> num_layers, hidden_size, num_heads, max_positions;

  LoadOptions options() const;
  void require_agreement(const LoadedModel& model) const;
};

void describe(OptionTable& table, ModelChoice& choice);

// Model and training flags that Megatron's scripts give to every program, as far as they occur in
// the arguments and the table does not have them: accepted without a meaning, or refused where
// training refuses them. Call before the flags are read; table.notes() then says which there were.
void ignore_training_flags(OptionTable& table, const Arguments& arguments);

}  // namespace bloomery
