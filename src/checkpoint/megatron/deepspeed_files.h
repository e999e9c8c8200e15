// The files of one global_stepN by their meaning.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace bloomery {

struct DeepSpeedFiles {
  std::map<int, std::string> models;                     // by model-parallel rank
  std::map<std::pair<int, int>, std::string> layers;     // by layer and tensor rank
  std::map<int, std::map<int, std::string>> optimizers;  // by model and data rank
  // Of runs without ZeRO, by model and expert rank.
  std::map<int, std::map<int, std::string>> expert_optimizers;
  struct Expert {
    int model_rank;
    std::string name;
  };
  std::vector<Expert> experts;  // by name
  bool universal = false;
};

// The file of a layer of the pipeline, counted from the cast in front of the embedding.
std::string two_digits(std::int64_t number);  // at least, as names of files have them
std::string layer_file(std::int64_t layer, int tensor_rank);

// An Error when files of some ranks are missing.
DeepSpeedFiles list_deepspeed_files(const std::filesystem::path& folder);

}  // namespace bloomery
