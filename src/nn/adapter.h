// Which layers of a model have adapters, and what their parameters are called.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "nn/model_options.h"
#include "parallel/low_rank.h"

namespace bloomery {

// What stands beside the linear layer of this name, such as "blocks.0.attention.qkv"; none:
// nothing.
std::optional<LowRankOptions> adapter_for(const ModelOptions& options, const std::string& layer);

inline constexpr std::string_view kFirstFactor = ".lora_a", kSecondFactor = ".lora_b";
bool is_adapter_parameter(std::string_view name);

// The same model with no adapter.
ModelOptions without_adapter(ModelOptions options);

}  // namespace bloomery
