// LoRA adapters in PEFT's files, adapter_config.json and adapter_model.safetensors.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "checkpoint/model_source.h"

namespace bloomery {

// As read.
class Adapter {
 public:
  // An Error names what is missing, misshapen, or of a kind that we do not compute (DoRA, trained
  // biases, whole modules beside the matrices).
  Adapter(Stream& stream, const std::filesystem::path& folder);

  struct Matrices {
    Tensor a, b;  // fp32 [rank, in], [out, rank]
  };
  // By module, as Hugging Face names it: "model.layers.0.self_attn.q_proj".
  const std::map<std::string, Matrices>& modules() const { return modules_; }
  const std::filesystem::path& folder() const { return folder_; }
  // Of this model: the rank is the largest of all modules. An Error where the adapter is for
  // modules that the model does not have.
  AdapterOptions options(const ModelOptions& model) const;
  bool one_rank() const;  // whether all modules have the same

 private:
  void read_config();

  std::filesystem::path folder_;
  AdapterOptions options_;  // but for rank and targets
  std::map<std::string, Matrices> modules_;
};

// The model with the adapter beside its weights, as one that was trained here has it. No run's
// progress goes with it.
std::unique_ptr<ModelSource> with_adapter(std::unique_ptr<ModelSource> model, Adapter adapter);

// A model that has an adapter, with it added to the weights, whose dtypes stay. No run's progress
// goes with it.
std::unique_ptr<ModelSource> merged(std::unique_ptr<ModelSource> model);

// Writes the adapter of a model that has one to a folder, which exists. `base` is what the files
// call the model that it is for. An Error where Hugging Face has no names for the layers.
void write_adapter(const ModelSource& model, const std::string& base,
                   const std::filesystem::path& folder);

}  // namespace bloomery
