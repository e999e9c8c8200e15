// A model from disk, ready to compute: what `generate` and `evaluate` start from. It holds weights
// only: no gradients, no optimizer.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>

#include "base/log.h"
#include "checkpoint/model_source.h"
#include "comm/mesh.h"
#include "models/model.h"
#include "ops/quantized/quantized_weights.h"
#include "tokenizer/load.h"

namespace bloomery {

struct LoadOptions {
  std::filesystem::path path;  // a --save folder, one step-N, or a Hugging Face folder
  DeviceOptions device;
  // What to compute in. None: on a GPU what training computed in (of a Hugging Face model: what its
  // weights are stored in), on the CPU fp32.
  std::optional<DType> dtype;
  QuantizedFormat quantized = QuantizedFormat::none;  // of the linear layers in blocks
  TokenizerOptions tokenizer;     // where it names one, it is used instead of the model's own
  std::filesystem::path adapter;  // of PEFT's, that stands beside the weights; empty: none
  bool merges_adapter = false;    // what stands beside the weights is added to them
  int tensor = 0;  // ranks that divide a model, which the others repeat; 0: all of them
};

class LoadedModel {
 public:
  // An Error says what is wrong with the path or the model. Weights go to the device one by one, so
  // that host memory never holds more than the largest of them besides the model itself. With a
  // `world` of several ranks each holds its part of the model as tensor-parallel ones do, and those
  // beyond a whole model are data-parallel; collective.
  explicit LoadedModel(const LoadOptions& options, const Log& log = Log(),
                       std::unique_ptr<Communicator> world = make_self_communicator());

  Device& device() { return *device_; }
  Stream& stream() { return *stream_; }
  Mesh& mesh() { return *mesh_; }
  bool is_divided() const { return mesh_->degree(Axis::tensor) > 1; }
  int ranks_on_device() const { return ranks_on_device_; }  // that share this rank's device
  const Model& model() const { return *model_; }
  // Padding of the vocabulary takes no part in the softmax, whatever it did in training.
  const ModelOptions& options() const { return model_->options(); }
  DType dtype() const { return dtype_; }

  const std::filesystem::path& folder() const { return folder_; }  // step-N, or the HF folder
  const HfTokenIds& token_ids() const { return token_ids_; }       // those the model itself names

  bool has_tokenizer() const { return tokenizer_options_.has_value(); }
  // Loaded at first use. An Error when none is known.
  const Tokenizer& tokenizer();
  // How texts become tokens: text_encoding() of its tokenizer. What an encoder reads is no prompt;
  // it gets tokens around it where the model is one of Hugging Face's.
  EncodeOptions encode_options() const;
  // The token that ends a document: of the tokenizer, else of the model's configuration.
  std::optional<TokenId> end_of_document();

  // The tokens that end a text: those that tokenizer, configuration and generation_config.json
  // name.
  std::vector<TokenId> eos_ids();
  // Where files beside the tokenizer are, such as its chat template: folders that exist.
  std::vector<std::filesystem::path> text_folders() const;

  // Whether training hid documents from each other (--reset-attention-mask): then a text does not
  // see the end-of-document token that it starts from.
  bool has_separate_documents() const { return separate_documents_; }

  // Whether it reads a text and writes another one, and the token that the second starts with: of
  // the model's configuration, else the tokenizer's.
  bool has_encoder() const { return Model::decoder_begin(options()) > 0; }
  std::optional<TokenId> start_of_answer();

  // For a forward pass without gradients or dropout.
  Context context(const Batch& batch, Cache* cache = nullptr);
  // Such a pass: logits of all columns. Collective, as passes of a divided model are.
  Tensor logits(const Batch& batch);

 private:
  std::unique_ptr<ModelSource> open(Stream& reading, const LoadOptions& options, const Log& log);
  void load_weights(const ModelSource& source);

  std::unique_ptr<Device> device_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Mesh> mesh_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<QuantizedWeights> quantized_;  // null: all weights are values
  int ranks_on_device_ = 1;
  DType dtype_ = DType::fp32;
  std::filesystem::path folder_;
  HfTokenIds token_ids_;
  bool separate_documents_ = false;
  std::optional<TokenizerOptions> tokenizer_options_;
  std::shared_ptr<const Tokenizer> tokenizer_;
};

}  // namespace bloomery
