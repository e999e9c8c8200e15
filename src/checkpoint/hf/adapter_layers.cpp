#include "checkpoint/hf/adapter_layers.h"

#include <algorithm>
#include <set>

#include "checkpoint/hf/hf_form.h"
#include "nn/adapter.h"

namespace bloomery {
namespace {

constexpr std::string_view kWeight = ".weight";

// The names of the layers that adapters could stand beside.
std::vector<std::string> layer_names(const ModelOptions& model) {
  ModelOptions all = model;
  all.adapter = {.enabled = true, .targets = {"*"}};
  const Model probe(all, Mesh::single(), DType::fp32);
  std::vector<std::string> names;
  for (const Parameter* parameter : probe.parameters()) {
    if (parameter->name.ends_with(kSecondFactor)) {
      names.push_back(parameter->name.substr(0, parameter->name.size() - kSecondFactor.size()));
    }
  }
  return names;
}

// By our names; empty for a model that Hugging Face has no form of.
std::map<std::string, TensorMap> weight_maps(const ModelOptions& model, std::string& prefix) {
  std::map<std::string, TensorMap> maps;
  const HuggingFace* form = nullptr;
  try {
    form = &hf_form(model);
  } catch (const Error&) {  // then layers have our names alone
    return maps;
  }
  prefix = form->prefix;
  for (TensorMap& map : expand(form->tensors, model)) {
    const std::string name = map.ours;
    maps.emplace(name, std::move(map));
  }
  return maps;
}

bool means(const std::string& word, const std::string& name) {
  return name == word || name.ends_with("." + word);
}

// "blocks.0.attention.qkv" without its number of a block.
std::string in_any_block(const std::string& target) {
  const std::size_t number = target.find_first_of("0123456789");
  const std::size_t dot = target.find('.', number);
  return number != 0 && dot != target.npos && target[number - 1] == '.' ? target.substr(dot + 1)
                                                                        : target;
}

// Every target once, and one for all blocks where all of them have it.
std::vector<std::string> said_once(const std::vector<AdaptableLayer>& layers,
                                   const std::set<std::string>& chosen) {
  std::map<std::string, int> missing;
  for (const AdaptableLayer& layer : layers) {
    for (std::size_t i = 0; i < std::max<std::size_t>(1, layer.modules.size()); ++i) {
      missing[in_any_block(layer.target(i))] += chosen.contains(layer.target(i)) ? 0 : 1;
    }
  }
  std::set<std::string> said;
  for (const std::string& target : chosen) {
    said.insert(missing.at(in_any_block(target)) == 0 ? in_any_block(target) : target);
  }
  return {said.begin(), said.end()};
}

std::string known_words(const std::vector<AdaptableLayer>& layers) {
  std::set<std::string> words;
  for (const AdaptableLayer& layer : layers) {
    words.insert(in_any_block(layer.name));
    for (const std::string& module : layer.modules) {
      words.insert(module.substr(module.rfind('.') + 1));
    }
  }
  std::string text;
  for (const std::string& word : words) {
    text += (text.empty() ? "" : ", ") + word;
  }
  return text;
}

// What the word means, or what no word means.
std::set<std::string> meant(const std::vector<AdaptableLayer>& layers, const std::string& word) {
  std::set<std::string> targets;
  for (const AdaptableLayer& layer : layers) {
    for (std::size_t i = 0; i < std::max<std::size_t>(1, layer.modules.size()); ++i) {
      const bool theirs = i < layer.modules.size() && means(word, layer.modules[i]);
      if (word == "all-linear" || theirs || means(word, layer.name) ||
          means(word, layer.target(i))) {
        targets.insert(layer.target(i));
      }
    }
  }
  check(!targets.empty(), "no linear layer that can have an adapter is called ", word,
        "; this model has ", known_words(layers), " (or all-linear)");
  return targets;
}

std::set<std::string> queries_and_values(const std::vector<AdaptableLayer>& layers) {
  std::set<std::string> targets;
  for (const AdaptableLayer& layer : layers) {
    if (layer.name.ends_with(".qkv")) {
      targets.insert(layer.target(0));
      targets.insert(layer.target(layer.modules.size() == 3 ? 2 : 0));
    }
  }
  return targets;
}

}  // namespace

std::string AdaptableLayer::target(std::size_t module) const {
  return modules.size() > 1 ? concat(name, ".", module) : name;
}

std::vector<AdaptableLayer> adaptable_layers(const ModelOptions& model) {
  const ModelOptions base = without_adapter(model);
  std::string prefix;
  const std::map<std::string, TensorMap> maps = weight_maps(base, prefix);
  std::vector<AdaptableLayer> layers;
  for (const std::string& name : layer_names(base)) {
    AdaptableLayer& layer = layers.emplace_back(AdaptableLayer{.name = name});
    const auto found = maps.find(name + std::string(kWeight));
    if (found == maps.end()) {
      continue;
    }
    layer.weight = found->second;
    for (const TensorMap::Part& part : layer.weight.parts) {
      layer.modules.push_back(prefix + part.theirs.substr(0, part.theirs.size() - kWeight.size()));
    }
  }
  return layers;
}

std::vector<std::string> adapter_targets(const ModelOptions& model,
                                         std::span<const std::string> words) {
  const std::vector<AdaptableLayer> layers = adaptable_layers(model);
  check(!layers.empty(), "a model of the family ", model.family,
        " has no linear layers that can have adapters");
  if (words.empty()) {
    return said_once(layers, queries_and_values(layers));
  }
  std::set<std::string> chosen;
  for (const std::string& word : words) {
    chosen.merge(meant(layers, word));
  }
  return said_once(layers, chosen);
}

TensorMap with_inputs(TensorMap weight, std::int64_t rank) {
  const int last = weight.order.rank() - 1;
  const bool first = inputs_first(weight);
  for (TensorMap::Part& part : weight.parts) {
    part.view[static_cast<int>(weight.order[last])] = rank;
    part.their_shape[first ? 0 : part.their_shape.rank() - 1] = rank;
  }
  weight.shape[last] = rank;
  return weight;
}

bool inputs_first(const TensorMap& weight) { return weight.order[weight.order.rank() - 1] == 0; }

}  // namespace bloomery
