#include "checkpoint/model_source.h"

#include <algorithm>
#include <cstring>

#include "checkpoint/boxes.h"
#include "checkpoint/folder.h"
#include "checkpoint/hf/hf_model.h"
#include "checkpoint/hf/hf_origin.h"
#include "checkpoint/megatron/foreign_source.h"
#include "checkpoint/missing_model.h"
#include "checkpoint/stored_model.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kReadBytes = 16 << 20;  // what one thread reads at a time

class CheckpointSource final : public ModelSource {
 public:
  CheckpointSource(Stream& stream, CheckpointReader reader)
      : ModelSource(stream), reader_(std::move(reader)) {
    folder_ = reader_.folder();
    record_ = stored_model(reader_);
    token_ids_ = bloomery::token_ids(reader_.state(), folder_.string());
    hf_origin_ = bloomery::hf_origin(reader_.state());
    const auto count = static_cast<std::int64_t>(reader_.manifest().tensors.size());
    check(record_.model.num_layers <= count, folder_.string(), ": has ", count,
          " tensors, too few for the ", record_.model.num_layers, " layers of its record");
    find_weights();
  }

  const RunState* state() const override { return &reader_.state(); }

  Tensor read(const std::string& name) const override {
    return read_part(name, Box::whole(reader_.tensor(name).shape));
  }

  Tensor read_part(const std::string& name, const Box& box) const override {
    Tensor tensor = Tensor::empty(*stream_, reader_.tensor(name).dtype, box.extent);
    const std::span bytes(static_cast<std::byte*>(tensor.data()), tensor.bytes());
    if (!bytes.empty()) {
      reader_.read(row_requests(name, box, bytes), stream_->device().pool());
    }
    return tensor;
  }

 private:
  void find_weights() {
    const Model model(record_.model, Mesh::single(), DType::fp32);
    for (const Parameter* parameter : model.parameters()) {
      const ManifestTensor& stored = reader_.tensor(parameter->name);
      check(stored.shape == parameter->box.global, folder_.string(), ": ", parameter->name, " is ",
            stored.shape, ", but the model of its record asks for ", parameter->box.global);
      check(is_floating(stored.dtype), folder_.string(), ": ", parameter->name, " is ",
            stored.dtype, ", which no weight can be");
      weights_.emplace(parameter->name, Entry{stored.dtype, stored.shape});
    }
    for (const auto& [name, stored] : reader_.manifest().tensors) {
      if (!weights_.contains(name)) {
        others_.emplace(name, Entry{stored.dtype, stored.shape});
      }
    }
  }

  static std::vector<CheckpointReader::Request> row_requests(const std::string& name,
                                                             const Box& part,
                                                             std::span<std::byte> to) {
    const std::int64_t rows = part.extent.rank() > 0 ? part.extent[0] : 0;
    if (rows == 0) {
      return {{name, part, to}};
    }
    const auto row_bytes = static_cast<std::int64_t>(to.size()) / rows;
    const std::int64_t step =
        std::max<std::int64_t>(1, kReadBytes / std::max<std::int64_t>(1, row_bytes));
    std::vector<CheckpointReader::Request> requests;
    for (std::int64_t begin = 0; begin < rows; begin += step) {
      Box box = part;
      box.offset[0] += begin;
      box.extent[0] = std::min(step, rows - begin);
      requests.push_back({name, box,
                          to.subspan(static_cast<std::size_t>(begin * row_bytes),
                                     static_cast<std::size_t>(box.extent[0] * row_bytes))});
    }
    return requests;
  }

  CheckpointReader reader_;
};

// What a Hugging Face model computes in: the one dtype of its weights, else fp32.
DType computing_dtype(const HfFolder& folder) {
  const DType first = folder.dtype(folder.tensors().front());
  const bool same = std::ranges::all_of(
      folder.tensors(), [&](const TensorMap& tensor) { return folder.dtype(tensor) == first; });
  return same && first != DType::fp64 ? first : DType::fp32;
}

class HfSource final : public ModelSource {
 public:
  HfSource(Stream& stream, const fs::path& path) : ModelSource(stream), model_(stream, path) {
    folder_ = path;
    record_.model = model_.options();
    record_.dtype = computing_dtype(model_);
    token_ids_ = model_.tokens();
    hf_origin_ = bloomery::hf_origin(path);
    if (has_tokenizer_files(path)) {
      record_.tokenizer = TokenizerOptions{.path = path.string()};
    }
    for (const TensorMap& tensor : model_.tensors()) {
      weights_.emplace(tensor.ours, Entry{model_.dtype(tensor), tensor.shape});
      maps_.emplace(tensor.ours, &tensor);
    }
  }

  Tensor read(const std::string& name) const override { return model_.read(*maps_.at(name)); }
  Tensor read_unused(const std::string& name) const override { return model_.read_unused(name); }

 private:
  HfFolder model_;
  std::map<std::string, const TensorMap*> maps_;
};

// One checkpoint that is named must be good; only among several is the newest good one looked for.
std::optional<CheckpointReader> find_checkpoint(Stream& stream, const fs::path& path,
                                                const Log& log) {
  const std::vector<CheckpointEntry> entries = checkpoints_at(path);
  if (entries.size() == 1) {
    return open_checkpoint(entries.front());
  }
  return find_newest(path, &stream.device().pool(), log);
}

}  // namespace

Tensor ModelSource::read_part(const std::string& name, const Box& box) const {
  Tensor whole = read(name);
  if (box.extent == whole.shape()) {
    return whole;
  }
  Tensor part = Tensor::empty(*stream_, whole.dtype(), box.extent);
  const std::size_t size = size_of(whole.dtype());
  if (part.numel() > 0) {
    for_each_run(
        box, Box::whole(whole.shape()), box,
        [&](std::int64_t from, std::int64_t to, std::int64_t count) {
          std::memcpy(
              static_cast<std::byte*>(part.data()) + static_cast<std::size_t>(to) * size,
              static_cast<const std::byte*>(whole.data()) + static_cast<std::size_t>(from) * size,
              static_cast<std::size_t>(count) * size);
        });
  }
  return part;
}

std::unique_ptr<ModelSource> open_model(Stream& stream, const fs::path& path, const Log& log) {
  check(!stream.on_cuda(), "models are read on the CPU");
  if (!fs::is_directory(path)) {
    throw Error(missing_model(path));
  }
  if (auto reader = find_checkpoint(stream, path, log)) {
    return std::make_unique<CheckpointSource>(stream, std::move(*reader));
  }
  if (!is_hf_folder(path)) {
    throw Error(missing_model(path));
  }
  return std::make_unique<HfSource>(stream, path);
}

std::unique_ptr<ModelSource> open_foreign_model(Stream& stream, const fs::path& path,
                                                const ForeignReading& how) {
  const auto foreign = fs::is_directory(path) && checkpoints_at(path).empty()
                           ? foreign_checkpoint(path)
                           : std::nullopt;
  check(foreign.has_value(), path.string(), " is no checkpoint of Megatron or DeepSpeed");
  return std::make_unique<CheckpointSource>(stream, open_foreign(*foreign, open_input_file, how));
}

}  // namespace bloomery
