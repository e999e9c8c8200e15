#include "checkpoint/hf/hf_origin.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "checkpoint/folder.h"
#include "checkpoint/stored_model.h"

namespace bloomery {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kMember = "hf_config";

// What the export says in its own way, and what was true of the files alone.
constexpr std::string_view kOwn[] = {"_name_or_path",
                                     "architectures",
                                     "auto_map",
                                     "dtype",
                                     "id2label",
                                     "label2id",
                                     "layer_types",
                                     "num_labels",
                                     "quantization_config",
                                     "torch_dtype",
                                     "transformers_version"};

bool is_own(const std::string& key) {
  return std::ranges::find(kOwn, key) != std::end(kOwn) || key.starts_with("rope_");
}

// By number; empty: it does not name all.
std::vector<std::string> class_names(const Json& config) {
  const auto found = config.find("id2label");
  std::vector<std::string> names;
  for (std::size_t i = 0; found != config.end() && found->is_object() && i < found->size(); ++i) {
    const auto name = found->find(std::to_string(i));
    if (name == found->end() || !name->is_string()) {
      return {};
    }
    names.push_back(name->get<std::string>());
  }
  return names;
}

template <class Names>
void set_class_names(Json& config, const Names& names) {
  Json numbers = Json::object(), labels = Json::object();
  for (std::size_t i = 0; i < names.size(); ++i) {
    numbers[std::to_string(i)] = names[i];
    labels[std::string(names[i])] = i;
  }
  config["id2label"] = numbers;
  config["label2id"] = labels;
}

// Ids that we do not know, and all ends of a model with several, of which we know one.
void take_token_ids(Json& merged, const Json& before) {
  for (const char* key :
       {"bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id"}) {
    const Json ours = merged.value(key, Json()), theirs = before.value(key, Json());
    const bool several = theirs.is_array() && std::ranges::find(theirs, ours) != theirs.end();
    if (several || (ours.is_null() && !theirs.is_null())) {
      merged[key] = theirs;
    }
  }
}

}  // namespace

std::string hf_origin(const std::filesystem::path& folder) {
  if (is_hf_folder(folder)) {
    return read_file(folder / "config.json");
  }
  const auto checkpoint = find_newest(folder, nullptr, Log(0, 1, LogLevel::error));
  return checkpoint ? hf_origin(checkpoint->state()) : "";
}

std::string hf_origin(const RunState& state) {
  const auto found = state.extra.find(kMember);
  return found == state.extra.end() ? "" : found->second;
}

void set_hf_origin(RunState& state, const std::string& config) {
  if (!config.empty()) {
    state.extra[kMember] = config;
  }
}

std::string tuned_origin(const std::string& origin, std::span<const std::string_view> names) {
  Json config = Json::parse(origin, nullptr, false);
  config = config.is_object() ? config : Json::object();
  config.erase("problem_type");
  if (!names.empty()) {
    set_class_names(config, names);
  }
  return config.empty() ? "" : config.dump();
}

std::string with_origin(const std::string& config, const std::string& origin) {
  const Json before = Json::parse(origin, nullptr, false);
  if (!before.is_object()) {
    return config;
  }
  Json merged = Json::parse(config);
  const std::vector<std::string> names = class_names(before);
  if (!names.empty() && names.size() == class_names(merged).size()) {
    set_class_names(merged, names);
  }
  take_token_ids(merged, before);
  if (before.value("model_type", Json()) == merged["model_type"]) {
    for (const auto& [key, value] : before.items()) {
      if (!merged.contains(key) && !is_own(key)) {
        merged[key] = value;
      }
    }
  }
  return merged.dump(2) + "\n";
}

std::string with_origin_ids(const std::string& generation_config, const std::string& origin) {
  const Json before = Json::parse(origin, nullptr, false);
  Json merged = Json::parse(generation_config);
  if (before.is_object()) {
    take_token_ids(merged, before);
  }
  return merged.dump(2) + "\n";
}

}  // namespace bloomery
