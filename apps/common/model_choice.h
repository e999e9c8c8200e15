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
  std::string load, dtype = "auto", adapter;
  bool merges_adapter = false;
  QuantizedFormat quantized = QuantizedFormat::none;
  TokenizerOptions tokenizer;
  DeviceChoice device;
  // What a script of Megatron's says about the model, which the checkpoint knows: must agree.
  std::optional<std::int64_t> num_layers, hidden_size, num_heads, max_positions;

  LoadOptions options() const;
  // An Error where the model has other sizes.
  void require_sizes(const LoadedModel& model) const;
};

// An Error where the model does not generate text.
void require_text_model(const LoadedModel& model);

void describe(OptionTable& table, ModelChoice& choice);

// How many tokens a text may have: what was asked for, or what the model was trained for, but not
// more than kUsualLength unless asked. An Error where the model has positions for fewer.
inline constexpr std::int64_t kUsualLength = 8192;
std::int64_t text_capacity(const LoadedModel& model, const std::optional<std::int64_t>& asked);

// Model and training flags that Megatron's scripts give to every program, as far as they occur in
// the arguments and the table does not have them: accepted without a meaning (--inference among
// them), or refused where training refuses them. Call before the flags are read; table.notes() then
// says which there were.
void ignore_training_flags(OptionTable& table, const Arguments& arguments);

}  // namespace bloomery
