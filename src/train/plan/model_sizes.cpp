#include "train/plan/model_sizes.h"

#include <algorithm>

#include "base/error.h"
#include "config/nearest.h"
#include "config/option_table.h"

namespace bloomery {
namespace {

std::vector<ModelSize> make_sizes() {
  std::vector<ModelSize> sizes = {
      // GPT-2; 345M is what Megatron's documents call 355M.
      {"124M", 12, 768, 12},
      {"gpt2", 12, 768, 12},
      {"345M", 24, 1024, 16},
      {"355M", 24, 1024, 16},
      {"gpt2-medium", 24, 1024, 16},
      {"774M", 36, 1280, 20},
      {"gpt2-large", 36, 1280, 20},
      {"1558M", 48, 1600, 25},
      {"gpt2-xl", 48, 1600, 25},
      // Megatron's scaling table, with 51,200 tokens and 2,048 positions.
      {"1.7B", 24, 2304, 24},
      {"3.6B", 30, 3072, 32},
      {"7.5B", 36, 4096, 32},
      {"18.4B", 40, 6144, 48},
      {"39.1B", 48, 8192, 64},
      {"76.1B", 60, 10240, 80},
      {"145.6B", 80, 12288, 96},
      {"310.1B", 96, 16384, 128},
      {"529.6B", 105, 20480, 128},
      {"1008B", 128, 25600, 160},
      // ALCF's MODEL_SIZE_KEY. GPT25B and GPT30B are one shape there, of 29.3 billion parameters.
      {"GPT125M", 12, 768, 16},
      {"BERT1.2B", 24, 2048, 128},
      {"GPT1_5B", 48, 1536, 24},
      {"GPT2_7B", 32, 2560, 32},
      {"GPT6_7B", 32, 4096, 32},
      {"LLAMA_7B", 32, 4096, 32},
      {"GPT13B", 40, 5120, 64},
      {"LLAMA_13B", 40, 5120, 40},
      {"GPT25B", 64, 6144, 64},
      {"GPT30B", 64, 6144, 64},
      {"GPT33B", 80, 6144, 64},
      {"LLAMA_70B", 80, 8192, 64},
      {"GPT145B", 80, 12288, 96},
  };
  for (const int layers : {2, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64}) {
    sizes.push_back({concat("GPT145B_", layers, "L"), layers, 12288, 96});
  }
  for (const int layers : {1, 2, 4, 8, 16, 24, 30, 32, 60, 64, 120, 128, 256, 512, 1024}) {
    sizes.push_back({concat("GPT1T_", layers, "L"), layers, 25600, 160});
  }
  return sizes;
}

}  // namespace

const std::vector<ModelSize>& model_sizes() {
  static const std::vector<ModelSize> sizes = make_sizes();
  return sizes;
}

const ModelSize& find_model_size(std::string_view name) {
  std::vector<std::string> names;
  for (const ModelSize& size : model_sizes()) {
    if (same_word(size.name, std::string(name))) {
      return size;
    }
    names.push_back(size.name);
  }
  throw Error(concat("there is no model size '", name, "'", suggestion(std::string(name), names)));
}

}  // namespace bloomery
