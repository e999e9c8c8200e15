#include "checkpoint/missing_model.h"

#include <algorithm>

#include "base/error.h"
#include "checkpoint/folder.h"
#include "checkpoint/megatron/foreign.h"
#include "checkpoint/stored_file.h"
#include "checkpoint/stored_model.h"
#include "config/nearest.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;

bool has_model_files(const fs::path& path) {
  return fs::is_directory(path) && (!checkpoints_at(path).empty() || is_hf_folder(path) ||
                                    foreign_checkpoint(path).has_value());
}

// Folders with a model directly below `folder`, by name.
std::vector<std::string> models_below(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code unreadable;
  for (const auto& item : fs::directory_iterator(folder, unreadable)) {
    try {
      if (has_model_files(item.path())) {
        names.push_back(item.path().filename().string());
      }
    } catch (const std::exception&) {  // a broken neighbour is nothing to suggest
      continue;
    }
  }
  std::ranges::sort(names);
  return names;
}

// Whoever follows instructions for Megatron or DeepSpeed looks for iter_N or global_stepN, where a
// run of ours saves step-N.
std::string saved_instead(const fs::path& path) {
  const std::string name = path.filename().string();
  for (const std::string_view stem : {"global_step", "iter_"}) {
    if (name.starts_with(stem)) {
      const std::string digits =
          name.substr(std::min(name.find_first_not_of('0', stem.size()), name.size()));
      const fs::path saved = path.parent_path() / concat("step-", digits);
      if (fs::exists(saved)) {
        return saved.string();
      }
    }
  }
  return "";
}

// "gpt2" or "meta-llama/Llama-2-7b-hf": what transformers would download.
bool may_be_hub_name(const fs::path& path) {
  const std::string text = path.string();
  return path.is_relative() && !text.starts_with('.') && !text.starts_with('~') &&
         std::ranges::count(text, '/') <= 1 && !text.ends_with('/') &&
         (!path.has_parent_path() || !fs::exists(path.parent_path()));
}

std::string absent_path(const fs::path& given) {
  const fs::path path = given.has_filename() ? given : given.parent_path();
  if (const std::string saved = saved_instead(path); !saved.empty()) {
    return concat("; its run saved ", saved);
  }
  const fs::path parent = path.has_parent_path() ? path.parent_path() : fs::path(".");
  const std::string near = nearest(path.filename().string(), models_below(parent));
  if (!near.empty()) {
    return concat("; did you mean ", path.has_parent_path() ? (parent / near).string() : near, "?");
  }
  return may_be_hub_name(given)
             ? "; give a folder with a model. Nothing is downloaded here: a model of the Hugging "
               "Face hub is a folder once `hf download NAME --local-dir FOLDER` has fetched it"
             : "; give a folder with a model";
}

}  // namespace

bool holds_model(const fs::path& path) {
  bool found = false;
  retry({}, [&] { found = has_model_files(path); });
  return found;
}

std::string missing_model(const fs::path& path) {
  if (!fs::exists(path)) {
    return concat(path.string(), " does not exist", absent_path(path));
  }
  if (!fs::is_directory(path)) {
    return concat(path.string(),
                  " is a file; give the folder of a checkpoint or of a Hugging Face model");
  }
  const std::vector<std::string> below = models_below(path);
  if (!below.empty()) {
    return concat(path.string(), " holds no model itself; ", (path / below.back()).string(),
                  " does");
  }
  return concat(
      path.string(),
      " holds no model: neither step-N folders nor a manifest.json (a checkpoint of Bloomery), nor "
      "a "
      "config.json (a Hugging Face model), nor a latest_checkpointed_iteration.txt (Megatron) or "
      "latest (DeepSpeed)");
}

bool same_folder(const fs::path& a, const fs::path& b) {
  const auto real = [](const fs::path& path) {  // with a slash at its end, whether it is there
    return fs::weakly_canonical(fs::absolute(path) / "") / "";
  };
  return real(a) == real(b);
}

}  // namespace bloomery
