// The layers of a model that can have adapters, by our names and by Hugging Face's.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "checkpoint/hf/tensor_map.h"

namespace bloomery {

struct AdaptableLayer {
  std::string name;                  // ours, "blocks.0.attention.qkv"
  std::vector<std::string> modules;  // theirs: one, or one for each part; empty: they have no name
  TensorMap weight;                  // of its weight, where they have a name for it

  // What one of its modules is as a target: the layer, or a part of it.
  std::string target(std::size_t module) const;
};

// In the order of the model. Of a model that Hugging Face has no form of: without modules.
std::vector<AdaptableLayer> adaptable_layers(const ModelOptions& model);

// AdapterOptions::targets for words of users or of PEFT: names of modules or layers, whole or their
// last parts, as PEFT matches them; "all-linear"; none: queries and values. An Error names a word
// that means nothing, and what there is. What is true of all blocks is said once.
std::vector<std::string> adapter_targets(const ModelOptions& model,
                                         std::span<const std::string> words);

// The map of the second factor of an adapter beside this weight: `rank` wide where the weight has
// its inputs.
TensorMap with_inputs(TensorMap weight, std::int64_t rank);
// Whether Hugging Face keeps the weight as [in, out] (GPT-2).
bool inputs_first(const TensorMap& weight);

}  // namespace bloomery
