// A model in any form that we read, seen the same way: options, tokenizer, and weights by our
// parameters' names, each read when it is asked for.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "base/log.h"
#include "checkpoint/model_record.h"
#include "tensor/box.h"

namespace bloomery {

class ModelSource {
 public:
  struct Entry {
    DType dtype = DType::fp32;
    Shape shape;  // whole; of the vocabulary the true rows
  };
  virtual ~ModelSource() = default;

  // Copies one tensor to the CPU, in the dtype it is stored in.
  virtual Tensor read(const std::string& name) const = 0;
  // A box of it. Where the files are not ours all of the tensor is read for it.
  virtual Tensor read_part(const std::string& name, const Box& box) const;
  // What is stored beside the model's parameters under a name that others of its family have; null:
  // nothing is.
  virtual Tensor read_unused(const std::string& /*name*/) const { return {}; }
  // What the run had reached; null for a model that comes from no run of ours.
  virtual const RunState* state() const { return nullptr; }

  Stream& stream() const { return *stream_; }                      // that weights are read to
  const std::filesystem::path& folder() const { return folder_; }  // step-N, or the HF folder
  const ModelRecord& record() const { return record_; }
  const HfTokenIds& token_ids() const { return token_ids_; }   // those the model itself names
  const std::string& hf_origin() const { return hf_origin_; }  // checkpoint/hf/hf_origin.h
  // Exactly the parameters of the model, in shapes that fit and floating-point types.
  const std::map<std::string, Entry>& weights() const { return weights_; }
  // What a checkpoint holds besides: the optimizer's moments.
  const std::map<std::string, Entry>& others() const { return others_; }

 protected:
  explicit ModelSource(Stream& stream) : stream_(&stream) {}

  Stream* stream_;
  std::filesystem::path folder_;
  ModelRecord record_;
  HfTokenIds token_ids_;
  std::string hf_origin_;
  std::map<std::string, Entry> weights_, others_;
};

// Opens a --save folder (its newest good checkpoint, every byte of which is then checked), one
// checkpoint (checked as it is read) or a Hugging Face folder. The stream must be on the CPU and
// outlive the source. An Error says why the path is none of them, or what is wrong with it.
std::unique_ptr<ModelSource> open_model(Stream& stream, const std::filesystem::path& path,
                                        const Log& log);

}  // namespace bloomery
