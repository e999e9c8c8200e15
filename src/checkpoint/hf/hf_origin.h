// What the config.json of a Hugging Face folder says beyond the model: keys that we do not know and
// names of classes go along in checkpoints and come back in an export.
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "checkpoint/snapshot.h"

namespace bloomery {

// The config.json that the model in a folder came with: the folder's own, or what its newest
// checkpoint carries. Empty: the model comes from no such folder.
std::string hf_origin(const std::filesystem::path& folder);
std::string hf_origin(const RunState& state);
void set_hf_origin(RunState& state, const std::string& config);

// The origin of a model that is tuned for a task, whose classes have these names; none: it has no
// classes.
std::string tuned_origin(const std::string& origin, std::span<const std::string_view> names);

// An exported config.json with the keys of the origin that it does not have itself, if both are of
// one model_type. Its classes are called as the origin's if there are as many.
std::string with_origin(const std::string& config, const std::string& origin);
// An exported generation_config.json with the token ids that the origin knows besides.
std::string with_origin_ids(const std::string& generation_config, const std::string& origin);

}  // namespace bloomery
