// Which tensor of ours a name in Megatron's and DeepSpeed's checkpoints means, and where in it the
// part of a tensor rank lies.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/family.h"
#include "tensor/box.h"

namespace bloomery {

// A part of a tensor of ours that lies row-major in another program's buffer.
struct TensorPart {
  std::string tensor;
  Box box;
};

// Rows that pad the vocabulary are a tensor of their own behind the parameter's name.
inline constexpr std::string_view kPaddingSuffix = "/padding";

// How a fused query, key and value matrix is ordered on a tensor rank: by the checkpoint_version of
// a file and the program that wrote it.
enum class QkvOrder : std::uint8_t {
  by_head,     // 2 and later: [heads][query, key, value][channels]
  by_kind,     // 0: [query, key, value][heads][channels]
  by_channel,  // 1: [heads][channels][query, key, value]
  thirds,      // of Megatron-DeepSpeed since FPDT: by_kind in self-attention alone
};

class MegatronNames {
 public:
  struct Entry {
    std::string ours;
    Shape shape;                              // whole
    int cut = MegatronTensor::kWhole;         // dimension
    bool vocabulary = false;                  // its rows are padded
    std::optional<std::int64_t> expert = {};  // the part of the tensor that it is
  };

  // Of a model that was cut into `tensor` ranks with so many rows of the vocabulary in all. An
  // Error when Megatron has no such model. Tensor ranks divide each expert with `cut_experts`, else
  // experts (and the MLP beside them) are whole. In each buffer of a fused matrix the parts of
  // `joined` ranks, each in that order, follow each other.
  MegatronNames(const ModelOptions& options, int tensor, std::int64_t padded_vocabulary,
                QkvOrder order, bool cut_experts = false, int joined = 1);

  int tensor_ranks() const { return tensor_; }
  // By the name without pipeline: "language_model.encoder.layers.3.input_layernorm.weight".
  const Entry* find(const std::string& theirs) const;
  const std::map<std::string, Entry>& entries() const { return entries_; }

  // What the buffer of a tensor rank holds, in order.
  std::vector<TensorPart> segments(const Entry& entry, int rank) const;
  // The shape that Megatron gives the tensor of a rank.
  Shape local_shape(const Entry& entry, const std::string& theirs) const;

 private:
  void add(const MegatronTensor& rule, std::int64_t layer, const Shape& shape);
  void reorder(std::vector<TensorPart>& segments, const Entry& entry, const Box& box) const;

  int tensor_;
  std::int64_t padded_vocabulary_;
  QkvOrder order_;
  bool cut_experts_;
  int joined_;
  std::int64_t vocabulary_;
  std::map<std::string, Entry> entries_;
};

// The number of the first layer in DeepSpeed's pipeline: a cast and the embedding come before it.
inline constexpr std::int64_t kFirstPipelineLayer = 2;
// The name without pipeline of a tensor in DeepSpeed's pipeline: of layer 2
// "input_layernorm.weight" is "language_model.encoder.layers.0.input_layernorm.weight".
std::string name_of_pipeline_layer(std::int64_t layer, std::string_view key);
// The same of a parameter of the pipeline's module: "2.input_layernorm.weight",
// "tied_modules.embed.word_embeddings.weight"; other names stay.
std::string name_of_pipeline_parameter(std::string_view parameter);
// Names of older versions as those of today.
std::string current_name(std::string name);
// The number of the layer in a name without pipeline; none: it is of no layer.
std::optional<std::int64_t> layer_of_name(std::string_view name);
std::string with_layer(std::string_view name, std::int64_t layer);
// The same of the number of an expert.
std::optional<std::int64_t> expert_of_name(std::string_view name);
std::string with_expert(std::string_view name, std::int64_t expert);

}  // namespace bloomery
