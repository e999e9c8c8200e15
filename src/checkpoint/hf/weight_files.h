// The weights of a Hugging Face folder in any of their forms: model.safetensors or
// pytorch_model.bin, whole or in shards with an index.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tensor/tensor.h"

namespace bloomery {

// One file of tensors.
class WeightFile {
 public:
  struct Entry {
    std::string type;            // as the file calls it
    std::optional<DType> dtype;  // none: a type that we do not compute with
    Shape shape;
  };
  virtual ~WeightFile() = default;
  virtual std::map<std::string, Entry> entries() const = 0;
  virtual Tensor read(Stream& stream, const std::string& name) const = 0;
};

class WeightFiles {
 public:
  // Opens what is there, in transformers' order: safetensors before .bin, whole before sharded. An
  // Error says what is missing or bad.
  explicit WeightFiles(const std::filesystem::path& folder);

  const std::filesystem::path& source() const { return source_; }  // the file or the index
  const std::map<std::string, WeightFile::Entry>& entries() const { return entries_; }
  Tensor read(Stream& stream, const std::string& name) const;

 private:
  void open_whole(const std::filesystem::path& path);
  void open_index(const std::filesystem::path& path);

  std::filesystem::path source_;
  std::map<std::string, WeightFile::Entry> entries_;
  std::map<std::string, std::shared_ptr<const WeightFile>> files_;  // by tensor
};

// "model-00002-of-00003.safetensors" of STEM and ENDING, numbers from 1; of one shard without them.
std::string shard_name(const std::string& stem, std::size_t number, std::size_t count,
                       const std::string& ending);

// The names that transformers looks for, in its order.
inline constexpr const char* kWeightNames[] = {"model.safetensors", "model.safetensors.index.json",
                                               "pytorch_model.bin", "pytorch_model.bin.index.json"};

}  // namespace bloomery
