// Adapters as PEFT reads them.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"
#include "checkpoint/hf/adapter.h"
#include "checkpoint/hf/adapter_layers.h"
#include "checkpoint/hf/hf_form.h"
#include "nn/adapter.h"
#include "tensor/safetensors.h"

namespace bloomery {
namespace {

Tensor transposed(Stream& stream, const Tensor& matrix) {
  const auto rows = static_cast<std::size_t>(matrix.shape()[0]),
             columns = static_cast<std::size_t>(matrix.shape()[1]);
  const std::vector<float> from = matrix.to_host<float>(stream);
  std::vector<float> to(from.size());
  for (std::size_t i = 0; i < rows; ++i) {
    for (std::size_t j = 0; j < columns; ++j) to[j * rows + i] = from[i * columns + j];
  }
  return Tensor::from_host(stream, to, {matrix.shape()[1], matrix.shape()[0]});
}

// The shortest endings of names that mean these modules and no others.
std::vector<std::string> target_modules(const std::set<std::string>& chosen,
                                        const std::set<std::string>& all) {
  std::set<std::string> words;
  for (const std::string& module : chosen) {
    std::string word;
    for (std::size_t dot = module.size(); word.empty() && dot != module.npos;) {
      dot = module.rfind('.', dot - 1);
      const std::string ending = dot == module.npos ? module : module.substr(dot + 1);
      const bool only = std::ranges::all_of(all, [&](const std::string& other) {
        return chosen.contains(other) || !other.ends_with("." + ending);
      });
      word = only || dot == module.npos ? ending : "";
    }
    words.insert(word);
  }
  return {words.begin(), words.end()};
}

// Whatever has a weight. An Error says why Hugging Face has no such model.
std::set<std::string> all_modules(const ModelOptions& options) {
  const ModelOptions base = without_adapter(options);
  const HuggingFace& form = hf_form(base);
  std::set<std::string> modules;
  for (const TensorMap& map : expand(form.tensors, base)) {
    for (const TensorMap::Part& part : map.parts) {
      modules.insert(std::string(form.prefix) + part.theirs.substr(0, part.theirs.rfind('.')));
    }
  }
  return modules;
}

struct Collected {
  std::map<std::string, Tensor> tensors;
  std::set<std::string> modules;
  bool transposed = false;
};

void add_layer(const ModelSource& model, const AdaptableLayer& layer, Collected& to) {
  Stream& stream = model.stream();
  const Tensor a = model.read(layer.name + std::string(kFirstFactor));
  const Tensor b = model.read(layer.name + std::string(kSecondFactor));
  const std::int64_t rank = b.shape().back();
  const std::vector<Tensor> parts = to_theirs(stream, with_inputs(layer.weight, rank), b);
  const LowRankOptions options = *adapter_for(model.record().model, layer.name);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const int place = options.places.empty() ? 0 : options.places[i];
    if (place < 0) continue;
    const std::string name = "base_model.model." + layer.modules[i];
    to.tensors[name + ".lora_A.weight"] =
        a.slice(place, place + 1).reshape({rank, a.shape().back()});
    to.transposed = inputs_first(layer.weight);
    to.tensors[name + ".lora_B.weight"] = to.transposed ? transposed(stream, parts[i]) : parts[i];
    to.modules.insert(layer.modules[i]);
  }
}

}  // namespace

void write_adapter(const ModelSource& model, const std::string& base,
                   const std::filesystem::path& folder) {
  const AdapterOptions& o = model.record().model.adapter;
  check(o.enabled, model.folder().string(),
        " has no adapter: it was not trained with --lora; --to hf writes the whole model");
  const std::set<std::string> all = all_modules(model.record().model);
  Collected found;
  for (const AdaptableLayer& layer : adaptable_layers(model.record().model)) {
    if (adapter_for(model.record().model, layer.name)) {
      add_layer(model, layer, found);
    }
  }
  write_safetensors(folder / "adapter_model.safetensors", model.stream(),
                    {found.tensors.begin(), found.tensors.end()}, {{"format", "pt"}});
  const nlohmann::ordered_json config = {{"peft_type", "LORA"},
                                         {"task_type", "CAUSAL_LM"},
                                         {"base_model_name_or_path", base},
                                         {"r", o.rank},
                                         {"lora_alpha", o.alpha},
                                         {"lora_dropout", std::round(1e6 * o.dropout) / 1e6},
                                         {"use_rslora", o.by_root},
                                         {"bias", "none"},
                                         {"fan_in_fan_out", found.transposed},
                                         {"target_modules", target_modules(found.modules, all)},
                                         {"inference_mode", true}};
  write_file(folder / "adapter_config.json", config.dump(2) + "\n");
}

}  // namespace bloomery
