#include <nlohmann/json.hpp>

#include "base/file.h"
#include "checkpoint/hf/weight_files.h"
#include "checkpoint/megatron/foreign_write.h"
#include "tensor/safetensors_writer.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;
using Named = std::pair<std::string, PyValue::Tensor>;

std::size_t bytes_of(const Named& weight) {
  return static_cast<std::size_t>(weight.second.shape.numel()) * size_of(weight.second.dtype);
}

// Consecutive weights of at most `limit` bytes; at least one each.
std::vector<std::vector<Named>> cut(const MegatronExporter& model, std::size_t limit) {
  std::vector<std::vector<Named>> shards(1);
  std::size_t bytes = 0;
  for (const std::string& name : model.names(0)) {
    const Named weight(name, model.tensor(name, 0, MegatronExporter::Kind::exact));
    if (!shards.back().empty() && bytes + bytes_of(weight) > limit) {
      shards.emplace_back();
      bytes = 0;
    }
    bytes += bytes_of(weight);
    shards.back().push_back(weight);
  }
  return shards;
}

void write_shard(const fs::path& path, const std::vector<Named>& weights) {
  if (path.extension() == ".safetensors") {
    std::vector<SafetensorsItem> items;
    for (const auto& [name, weight] : weights) {
      items.push_back({name, weight.dtype, weight.shape});
    }
    SafetensorsWriter file(path, items, {{"format", "pt"}});
    for (const auto& [name, weight] : weights) {
      file.write(name, weight.pieces.front()());
    }
    return file.commit();
  }
  PyValue::Dict dict;
  for (const auto& [name, weight] : weights) {
    dict.emplace_back(name, weight);
  }
  write_torch_file(path, PyValue::Ordered{dict});
}

}  // namespace

void write_exact_weights(const ModelSource& source, const fs::path& folder,
                         const ExactWeightsForm& form) {
  const MegatronExporter model(source, {});
  const auto shards = cut(model, form.max_shard_bytes);
  const std::string stem = form.safetensors ? "model" : "pytorch_model",
                    ending = form.safetensors ? ".safetensors" : ".bin";
  fs::create_directories(folder);
  nlohmann::ordered_json places = nlohmann::ordered_json::object();
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::string file = shard_name(stem, i + 1, shards.size(), ending);
    write_shard(folder / file, shards[i]);
    for (const Named& weight : shards[i]) {
      places[weight.first] = file;
      bytes += bytes_of(weight);
    }
  }
  if (shards.size() > 1) {
    const nlohmann::ordered_json index{{"metadata", {{"total_size", bytes}}},
                                       {"weight_map", places}};
    write_file(folder / concat(stem, ending, ".index.json"), index.dump(2) + "\n");
  }
}

}  // namespace bloomery
