#include "checkpoint/hf/adapter.h"

#include "base/file.h"
#include "checkpoint/hf/adapter_layers.h"
#include "config/json_fields.h"
#include "tensor/safetensors.h"

namespace bloomery {
namespace {

constexpr std::string_view kBefore = "base_model.model.";

// As fp32, whatever the floating-point type.
std::vector<float> floats(Stream& stream, const Tensor& tensor) {
  return dispatch_floating(tensor.dtype(), [&](auto tag) {
    std::vector<float> values;
    for (const auto value : tensor.to_host<typename decltype(tag)::type>(stream)) {
      values.push_back(static_cast<float>(value));
    }
    return values;
  });
}

}  // namespace

void Adapter::read_config() {
  const std::filesystem::path path = folder_ / "adapter_config.json";
  check(std::filesystem::exists(path), folder_.string(),
        ": adapter_config.json is missing; a PEFT adapter has one");
  const JsonFields config(read_file(path), path.string());
  const std::string kind = config.get<std::string>("peft_type");
  config.require(kind == "LORA", "peft_type is ", kind, "; only LORA is supported");
  options_.enabled = true;
  options_.alpha = config.get<double>("lora_alpha");
  config.require(options_.alpha > 0, "lora_alpha is ", options_.alpha, ", not above 0");
  options_.dropout = static_cast<float>(config.find<double>("lora_dropout").value_or(0));
  config.require(options_.dropout >= 0 && options_.dropout < 1, "lora_dropout is ",
                 options_.dropout, ", not in [0, 1)");
  const auto flag = [&](const char* name) { return config.find<bool>(name).value_or(false); };
  options_.by_root = flag("use_rslora");
  config.require(!flag("use_dora"), "use_dora is not understood");
  config.require(config.find<std::string>("bias").value_or("none") == "none",
                 "trained biases (bias) are not understood");
  config.require(config.kind("alpha_pattern") == JsonFields::Kind::absent ||
                     config.json("alpha_pattern") == "{}" || config.json("alpha_pattern") == "null",
                 "alpha_pattern is not understood");
}

Adapter::Adapter(Stream& stream, const std::filesystem::path& folder) : folder_(folder) {
  read_config();
  const SafetensorsFile file(folder / "adapter_model.safetensors");
  for (const auto& [name, entry] : file.entries()) {
    std::string module = name.starts_with(kBefore) ? name.substr(kBefore.size()) : name;
    const bool a = module.ends_with(".lora_A.weight"), b = module.ends_with(".lora_B.weight");
    check((a || b) && entry.shape.rank() == 2, folder.string(), ": ", name,
          " is no matrix of LoRA");
    module.resize(module.size() - std::string_view(".lora_A.weight").size());
    const std::vector<float> values = floats(stream, file.read(stream, name));
    (a ? modules_[module].a : modules_[module].b) = Tensor::from_host(stream, values, entry.shape);
  }
  check(!modules_.empty(), folder.string(), ": the adapter has no matrices");
  for (const auto& [module, matrices] : modules_) {
    check(matrices.a && matrices.b && matrices.a.shape()[0] == matrices.b.shape()[1] &&
              matrices.a.shape()[0] > 0,
          folder.string(), ": lora_A and lora_B of ", module, " do not fit each other");
  }
}

AdapterOptions Adapter::options(const ModelOptions& model) const {
  AdapterOptions options = options_;
  options.rank = 0;
  std::vector<std::string> words;
  for (const auto& [module, matrices] : modules_) {
    words.push_back(module);
    options.rank = std::max(options.rank, matrices.a.shape()[0]);
  }
  try {
    options.targets = adapter_targets(model, words);
  } catch (const Error& error) {
    throw Error(concat(folder_.string(), ": ", error.what()));
  }
  return options;
}

bool Adapter::one_rank() const {
  for (const auto& [module, matrices] : modules_) {
    if (matrices.a.shape()[0] != modules_.begin()->second.a.shape()[0]) {
      return false;
    }
  }
  return true;
}

}  // namespace bloomery
