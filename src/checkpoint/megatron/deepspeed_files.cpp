#include "checkpoint/megatron/deepspeed_files.h"

#include <algorithm>
#include <regex>

#include "base/error.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;

void add(DeepSpeedFiles& files, const std::string& name) {
  static const std::regex kModel("(zero_pp_rank_0_)?mp_rank_([0-9]{2,5})_model_states\\.pt");
  static const std::regex kLayer("layer_([0-9]{2,5})-model_([0-9]{2,5})-model_states\\.pt");
  static const std::regex kOptimizer(
      "(bf16_)?zero_pp_rank_([0-9]{1,6})_mp_rank_([0-9]{2,5})_optim_states\\.pt");
  static const std::regex kExpert(
      "(layer_[0-9]{1,6}_)?expert_[0-9]{1,6}_mp_rank_([0-9]{2,5})_model_states\\.pt");
  static const std::regex kExpertOptimizer(
      "expp_rank_([0-9]{1,6})_mp_rank_([0-9]{2,5})_optim_states\\.pt");
  std::smatch match;
  if (std::regex_match(name, match, kModel)) {
    files.models.emplace(std::stoi(match[2]), name);
  } else if (std::regex_match(name, match, kLayer)) {
    files.layers.emplace(std::pair(std::stoi(match[1]), std::stoi(match[2])), name);
  } else if (std::regex_match(name, match, kOptimizer)) {
    files.optimizers[std::stoi(match[3])].emplace(std::stoi(match[2]), name);
  } else if (std::regex_match(name, match, kExpert)) {
    files.experts.push_back({std::stoi(match[2]), name});
  } else if (std::regex_match(name, match, kExpertOptimizer)) {
    files.expert_optimizers[std::stoi(match[2])].emplace(std::stoi(match[1]), name);
  }
}

}  // namespace

std::string two_digits(std::int64_t number) { return concat(number < 10 ? "0" : "", number); }

std::string layer_file(std::int64_t layer, int tensor_rank) {
  return concat("layer_", two_digits(layer), "-model_", two_digits(tensor_rank),
                "-model_states.pt");
}

DeepSpeedFiles list_deepspeed_files(const fs::path& folder) {
  DeepSpeedFiles files;
  for (const auto& item : fs::directory_iterator(folder)) {
    add(files, item.path().filename().string());
  }
  std::ranges::sort(files.experts, {}, &DeepSpeedFiles::Expert::name);
  files.universal = fs::is_directory(folder / "zero");
  const auto complete = [&](const auto& ranks, const char* what) {
    check(!ranks.empty() && ranks.rbegin()->first + 1 == static_cast<int>(ranks.size()),
          folder.string(), ": ", what, " of some ranks are missing");
  };
  complete(files.models, "files of model states");
  for (const auto& [rank, optimizers] : files.optimizers) {
    complete(optimizers, "files of optimizer states");
    check(optimizers.size() == files.optimizers.begin()->second.size(), folder.string(),
          ": the model-parallel ranks have different numbers of optimizer states");
  }
  check(files.optimizers.empty() || files.optimizers.size() == files.models.size(), folder.string(),
        ": files of optimizer states of some ranks are missing");
  return files;
}

}  // namespace bloomery
