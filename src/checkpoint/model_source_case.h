// A small native checkpoint for tests: a GPT with random weights, saved as training saves it, and a
// tokenizer for it.
#pragma once

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "autograd/parameter.h"
#include "checkpoint/hf/hf_model.h"
#include "checkpoint/writer.h"
#include "models/model.h"

namespace bloomery {

inline ModelOptions small_gpt() {
  ModelOptions o;
  o.num_layers = 2;
  o.hidden_size = 16;
  o.attention.num_heads = 2;
  o.vocabulary.size = 61;
  o.vocabulary.divisible_by = 16;
  o.positions.max_length = 24;
  return o;
}

// The weights of a model by name: functions of the seed.
inline std::map<std::string, Tensor> random_weights(Stream& stream, const ModelOptions& options,
                                                    DType dtype, std::uint64_t seed = 1) {
  std::map<std::string, Tensor> weights;
  Model model(options, Mesh::single(), dtype);
  for (Parameter* parameter : model.parameters()) {
    parameter->local_shape = parameter->box.extent;  // without padding
    parameter->init = {Init::Kind::normal, 0.3};
    parameter->value = Tensor::empty(stream, dtype, parameter->local_shape);
    initialize(*parameter, seed, stream);
    weights.emplace(parameter->name, parameter->value);
  }
  return weights;
}

// vocab.json and merges.txt of a GPT-2 tokenizer with the vocabulary of small_gpt: letters, digits,
// some signs, space, newline and five merges; <|endoftext|> is 60.
inline TokenizerOptions write_small_tokenizer(const std::filesystem::path& folder) {
  std::vector<std::string> pieces = {"\u0120", "\u010a"};
  for (const char c : std::string("abcdefghijklmnopqrstuvwxyz0123456789.,'()[]{}@-=:;!?")) {
    pieces.emplace_back(1, c);
  }
  pieces.insert(pieces.end(), {"\\\"", "th", "\u0120t", "\u0120th", "er", "in", "<|endoftext|>"});
  std::string vocabulary;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    vocabulary += concat(i == 0 ? "{\"" : ", \"", pieces[i], "\": ", i);
  }
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "vocab.json") << vocabulary << "}";
  std::ofstream(folder / "merges.txt") << "#version: 0.2\nt h\n\u0120 t\n\u0120 th\ne r\ni n\n";
  return {.type = "GPT2BPETokenizer",
          .vocab_file = (folder / "vocab.json").string(),
          .merge_file = (folder / "merges.txt").string()};
}

// A model in memory.
class ModelInMemory final : public ModelSource {
 public:
  ModelInMemory(Stream& stream, const ModelOptions& options, std::map<std::string, Tensor> tensors)
      : ModelSource(stream), tensors_(std::move(tensors)) {
    record_.model = options;
    for (const auto& [name, tensor] : tensors_) {
      weights_.emplace(name, Entry{tensor.dtype(), tensor.shape()});
    }
  }
  Tensor read(const std::string& name) const override { return tensors_.at(name); }

 private:
  std::map<std::string, Tensor> tensors_;
};

inline void write_hf(Stream& stream, const std::filesystem::path& folder,
                     const ModelOptions& options, const std::map<std::string, Tensor>& tensors,
                     const HfExportOptions& extra = {}) {
  write_hf(ModelInMemory(stream, options, tensors), folder, extra);
}

// SAVE/step-N with these weights and, as after training, an optimizer's state.
inline void save_checkpoint(const std::filesystem::path& save, std::int64_t step,
                            const ModelRecord& record, const std::map<std::string, Tensor>& weights,
                            const std::string& optimizer = "adam",
                            const OptimizerRule& rule = Adam{}) {
  Snapshot snapshot;
  snapshot.state.step = step;
  snapshot.state.options = concat(R"({"optimizer":")", optimizer, R"("})");
  set_model_record(snapshot.state, record);
  const auto add = [&](const std::string& name, const Tensor& tensor) {
    snapshot.pieces.push_back({.tensor = name,
                               .dtype = tensor.dtype(),
                               .box = Box::whole(tensor.shape()),
                               .data = tensor.data(),
                               .owner = tensor.storage()});
  };
  for (const auto& [name, tensor] : weights) {
    add(name, tensor);
    for (const StateTensor& each : state_of(rule)) {
      add(state_name(name, each), tensor);
    }
  }
  CheckpointWriter writer(save, single_rank_group(), {.file = {.direct = false}});
  writer.save(std::move(snapshot));
  const auto outcome = writer.finish();
  check(outcome && outcome->committed, "the test's checkpoint was not saved");
}

}  // namespace bloomery
