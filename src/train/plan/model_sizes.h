// Shapes of models by name: Megatron's tables, the GPT-2 sizes, and the keys of ALCF's scripts.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery {

struct ModelSize {
  std::string name;
  std::int64_t num_layers, hidden_size, num_attention_heads;
};

const std::vector<ModelSize>& model_sizes();
// By name, in any case; an Error that suggests the nearest when there is none.
const ModelSize& find_model_size(std::string_view name);

}  // namespace bloomery
