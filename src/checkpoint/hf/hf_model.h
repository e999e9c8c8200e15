// Models in Hugging Face's folders, both ways: config.json and weights to options and parameters
// by our names, and back. Numbers keep the dtype they are stored in.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "checkpoint/hf/hf_form.h"
#include "checkpoint/hf/hf_tokenizer_files.h"
#include "checkpoint/hf/tensor_map.h"
#include "checkpoint/hf/weight_files.h"
#include "checkpoint/model_source.h"

namespace bloomery {

// A folder that was opened and checked: the weights are those that the configuration needs, under
// names with or without the prefix of their form, in shapes that fit. Tensors are read when asked
// for.
class HfFolder {
 public:
  // On the CPU. An Error names the first few of whatever is missing, misshapen or unknown.
  HfFolder(Stream& stream, const std::filesystem::path& folder);

  const ModelOptions& options() const { return config_.options; }
  const HfTokenIds& tokens() const { return config_.tokens; }
  const std::vector<TensorMap>& tensors() const { return tensors_; }  // names and shapes
  DType dtype(const TensorMap& tensor) const;
  Tensor read(const TensorMap& tensor) const;  // in our layout
  // What the files have although the model does not use it, as the pooler of a BERT that only tells
  // hidden tokens; null: they have no such tensor.
  Tensor read_unused(std::string_view ours) const;

 private:
  void find_tensors();
  void settle_output();
  void require_all();

  Stream& stream_;
  std::filesystem::path folder_;
  HfModelConfig config_;
  WeightFiles weights_;
  std::vector<TensorMap> tensors_;
  std::map<std::string, std::string> stored_;  // their name without prefix, as the file has it
};

struct HfModel {
  ModelOptions options;
  HfTokenIds tokens;
  std::map<std::string, Tensor> tensors;  // by our parameters' names, whole, on the CPU
};

HfModel read_hf(Stream& stream, const std::filesystem::path& folder);

struct HfExportOptions {
  HfTokenIds tokens;  // of the model; those of `tokenizer` come first
  HfTokenizer tokenizer;
  std::string origin = {};  // checkpoint/hf/hf_origin.h
  std::size_t max_shard_bytes = 5'000'000'000;
  std::optional<DType> dtype = {};  // none: each weight keeps its own
};

// Writes config.json, generation_config.json, the weights (in shards when there are too many bytes
// for one) and the tokenizer's files; makes the folder. Each file appears whole or not at all,
// config.json last. One weight of the source at a time is in memory. An Error says why a model has
// no form, or that the folder holds weights of a kind that transformers would prefer to the new
// ones.
void write_hf(const ModelSource& source, const std::filesystem::path& folder,
              const HfExportOptions& extra = {});

}  // namespace bloomery
