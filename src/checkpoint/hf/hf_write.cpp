#include <algorithm>
#include <iomanip>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "checkpoint/hf/hf_model.h"
#include "checkpoint/hf/hf_origin.h"
#include "tensor/safetensors.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using Tensors = std::map<std::string, Tensor>;

std::string full_name(const HuggingFace& form, const std::string& theirs) {
  return theirs == form.output ? theirs : concat(form.prefix, theirs);
}

void require_tensors(const std::vector<TensorMap>& maps, const Tensors& tensors) {
  for (const TensorMap& map : maps) {
    const auto found = tensors.find(map.ours);
    check(found != tensors.end(), "to export the model, its parameter ", map.ours, " is missing");
    check(found->second.shape() == map.shape, "parameter ", map.ours, " is ", found->second.shape(),
          ", but the model's options ask for ", map.shape);
  }
  check(tensors.size() == maps.size(), "there are ", tensors.size(),
        " parameters to export, but this model has ", maps.size());
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
std::vector<std::vector<TensorMap>> cut(const std::vector<TensorMap>& maps, const Tensors& tensors,
                                        std::size_t limit) {
  std::vector<std::vector<TensorMap>> shards(1);
  std::size_t bytes = 0;
  for (const TensorMap& map : maps) {
    const std::size_t more = tensors.at(map.ours).bytes();
    if (!shards.back().empty() && bytes + more > limit) {
      shards.emplace_back();
      bytes = 0;
    }
    bytes += more;
    shards.back().push_back(map);
  }
  return shards;
}

void write_shard(Stream& stream, const fs::path& path, const HuggingFace& form,
                 const std::vector<TensorMap>& maps, const Tensors& tensors) {
  std::vector<std::pair<std::string, Tensor>> theirs;
  for (const TensorMap& map : maps) {
    const std::vector<Tensor> parts = to_theirs(stream, map, tensors.at(map.ours));
    for (std::size_t i = 0; i < parts.size(); ++i) {
      theirs.emplace_back(full_name(form, map.parts[i].theirs), parts[i]);
    }
  }
  write_safetensors(path, stream, theirs, {{"format", "pt"}});
}

void write_shards(Stream& stream, const fs::path& folder, const HuggingFace& form,
                  const Tensors& tensors, const std::vector<std::vector<TensorMap>>& shards) {
  Json places = Json::object();
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::string name = shard_name("model", i + 1, shards.size(), ".safetensors");
    write_shard(stream, folder / name, form, shards[i], tensors);
    for (const TensorMap& map : shards[i]) {
      for (const TensorMap::Part& part : map.parts) {
        places[full_name(form, part.theirs)] = name;
      }
      bytes += tensors.at(map.ours).bytes();
    }
  }
  const Json index{{"metadata", {{"total_size", bytes}}}, {"weight_map", places}};
  write_file(folder / kWeightNames[1], index.dump(2) + "\n");
}

// What the configuration calls the model's dtype: transformers converts all weights to it, so the
// one that holds every other without rounding.
DType common_dtype(const Tensors& tensors) {
  DType widest = tensors.begin()->second.dtype();
  for (const auto& [name, tensor] : tensors) {
    check(is_floating(tensor.dtype()), "parameter ", name, " is ", tensor.dtype());
    const bool halves = size_of(tensor.dtype()) == 2 && size_of(widest) == 2;
    if (halves && tensor.dtype() != widest) {
      widest = DType::fp32;
    } else if (size_of(tensor.dtype()) > size_of(widest)) {
      widest = tensor.dtype();
    }
  }
  return widest;
}

}  // namespace

void write_hf(Stream& stream, const fs::path& folder, const ModelOptions& options,
              const Tensors& tensors, const HfExportOptions& extra) {
  const HuggingFace& form = hf_form(options);
  const std::vector<TensorMap> maps = expand(form.tensors, options);
  require_tensors(maps, tensors);
  const DType dtype = common_dtype(tensors);
  const auto shards = cut(maps, tensors, extra.max_shard_bytes);
  require_no_rival(folder, kWeightNames[shards.size() == 1 ? 0 : 1]);

  fs::create_directories(folder);
  if (shards.size() == 1) {
    write_shard(stream, folder / kWeightNames[0], form, shards[0], tensors);
  } else {
    write_shards(stream, folder, form, tensors, shards);
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
