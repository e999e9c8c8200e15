#include <nlohmann/json.hpp>

#include "base/file.h"
#include "checkpoint/hf/hf_model.h"
#include "checkpoint/hf/hf_origin.h"
#include "ops/arithmetic/arithmetic.h"
#include "tensor/safetensors_writer.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Weights = std::map<std::string, ModelSource::Entry>;

std::string full_name(const HuggingFace& form, const std::string& theirs) {
  return theirs == form.output ? theirs : concat(form.prefix, theirs);
}

// What is written of a model: every weight in its shape, and its dtype in the files.
Weights weights_to_write(const std::vector<TensorMap>& maps, const ModelSource& source,
                         const std::optional<DType>& dtype) {
  Weights weights = source.weights();
  for (const TensorMap& map : maps) {
    const auto found = weights.find(map.ours);
    check(found != weights.end(), "to export the model, its parameter ", map.ours, " is missing");
    check(found->second.shape == map.shape, "parameter ", map.ours, " is ", found->second.shape,
          ", but the model's options ask for ", map.shape);
  }
  check(weights.size() == maps.size(), "there are ", weights.size(),
        " parameters to export, but this model has ", maps.size());
  for (auto& [name, entry] : weights) {
    check(is_floating(entry.dtype), "parameter ", name, " is ", entry.dtype);
    entry.dtype = dtype.value_or(entry.dtype);
  }
  return weights;
}

std::size_t bytes_of(const ModelSource::Entry& entry) {
  return static_cast<std::size_t>(entry.shape.numel()) * size_of(entry.dtype);
}

// The files of an earlier export with the same names are replaced; others would be read first.
void require_no_rival(const fs::path& folder, const std::string& written) {
  for (const char* name : kWeightNames) {
    if (name == written) {
      return;
    }
    check(!fs::exists(folder / name), folder.string(), " already holds ", name,
          ", which would be read instead of the new weights; choose an empty folder");
  }
}

// Consecutive rows of at most `limit` bytes; at least one each.
std::vector<std::vector<TensorMap>> cut(const std::vector<TensorMap>& maps, const Weights& weights,
                                        std::size_t limit) {
  std::vector<std::vector<TensorMap>> shards(1);
  std::size_t bytes = 0;
  for (const TensorMap& map : maps) {
    const std::size_t more = bytes_of(weights.at(map.ours));
    if (!shards.back().empty() && bytes + more > limit) {
      shards.emplace_back();
      bytes = 0;
    }
    bytes += more;
    shards.back().push_back(map);
  }
  return shards;
}

Tensor as_dtype(Stream& stream, Tensor tensor, DType dtype) {
  if (tensor.dtype() == dtype) {
    return tensor;
  }
  Tensor rounded = Tensor::empty(stream, dtype, tensor.shape());
  launch(stream, ScaleAdd{.x = tensor, .y = rounded});
  return rounded;
}

void write_shard(const ModelSource& source, const fs::path& path, const HuggingFace& form,
                 const std::vector<TensorMap>& maps, const Weights& weights) {
  std::vector<SafetensorsItem> items;
  for (const TensorMap& map : maps) {
    for (const TensorMap::Part& part : map.parts) {
      items.push_back({full_name(form, part.theirs), weights.at(map.ours).dtype, part.their_shape});
    }
  }
  SafetensorsWriter file(path, std::move(items), {{"format", "pt"}});
  Stream& stream = source.stream();
  for (const TensorMap& map : maps) {
    const Tensor ours = as_dtype(stream, source.read(map.ours), weights.at(map.ours).dtype);
    const std::vector<Tensor> parts = to_theirs(stream, map, ours);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      file.write(full_name(form, map.parts[i].theirs), parts[i]);
    }
  }
  file.commit();
}

void write_shards(const ModelSource& source, const fs::path& folder, const HuggingFace& form,
                  const Weights& weights, const std::vector<std::vector<TensorMap>>& shards) {
  Json places = Json::object();
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::string name = shard_name("model", i + 1, shards.size(), ".safetensors");
    write_shard(source, folder / name, form, shards[i], weights);
    for (const TensorMap& map : shards[i]) {
      for (const TensorMap::Part& part : map.parts) {
        places[full_name(form, part.theirs)] = name;
      }
      bytes += bytes_of(weights.at(map.ours));
    }
  }
  const Json index{{"metadata", {{"total_size", bytes}}}, {"weight_map", places}};
  write_file(folder / kWeightNames[1], index.dump(2) + "\n");
}

// What the configuration calls the model's dtype: transformers converts all weights to it, so the
// one that holds every other without rounding.
DType common_dtype(const Weights& weights) {
  DType widest = weights.begin()->second.dtype;
  for (const auto& [name, entry] : weights) {
    const bool halves = size_of(entry.dtype) == 2 && size_of(widest) == 2;
    if (halves && entry.dtype != widest) {
      widest = DType::fp32;
    } else if (size_of(entry.dtype) > size_of(widest)) {
      widest = entry.dtype;
    }
  }
  return widest;
}

}  // namespace

void write_hf(const ModelSource& source, const fs::path& folder, const HfExportOptions& extra) {
  const ModelOptions& options = source.record().model;
  const HuggingFace& form = hf_form(options);
  const std::vector<TensorMap> maps = expand(form.tensors, options);
  const Weights weights = weights_to_write(maps, source, extra.dtype);
  const DType dtype = common_dtype(weights);
  const auto shards = cut(maps, weights, extra.max_shard_bytes);
  require_no_rival(folder, kWeightNames[shards.size() == 1 ? 0 : 1]);

  fs::create_directories(folder);
  if (shards.size() == 1) {
    write_shard(source, folder / kWeightNames[0], form, shards[0], weights);
  } else {
    write_shards(source, folder, form, weights, shards);
  }
  write_tokenizer_files(folder, extra.tokenizer, options.positions.max_length);
  HfTokenIds tokens = extra.tokens;
  for (auto id : {&HfTokenIds::bos, &HfTokenIds::eos, &HfTokenIds::pad}) {
    if (extra.tokenizer.tokens.*id) {
      tokens.*id = extra.tokenizer.tokens.*id;
    }
  }
  write_file(folder / "generation_config.json",
             with_origin_ids(generation_config(tokens), extra.origin));
  write_file(folder / "config.json",
             with_origin(hf_config_text(form, options, tokens, dtype), extra.origin));
}

}  // namespace bloomery
