// GPT-2 as Hugging Face's transformers describes it: config.json and the names of its tensors.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "checkpoint/hf/tensor_map.h"
#include "models/gpt.h"

namespace bloomery {

// Ids that a configuration gives to tokens with a meaning.
struct HfTokenIds {
  std::optional<std::int64_t> bos, eos, pad;
  bool operator==(const HfTokenIds&) const = default;
};

struct Gpt2Config {
  GptOptions options;
  HfTokenIds tokens;
};

// What a config.json says; absent keys have transformers' defaults. A value that would change
// numbers and that we do not compute, and anything malformed, is an Error that names all of them.
Gpt2Config read_gpt2_config(std::string_view json, const std::string& source);

// Why these options are no GPT-2 of transformers, one line each; empty when they are.
std::vector<std::string> gpt2_problems(const GptOptions& options);

// config.json and generation_config.json of a GPT-2 whose weights are stored as `dtype`.
std::string write_gpt2_config(const Gpt2Config& config, DType dtype);
std::string write_generation_config(const HfTokenIds& tokens);

// Names without `transformer.`; the output's weight only of an untied model.
inline constexpr std::string_view kGpt2Prefix = "transformer.";
inline constexpr std::string_view kGpt2Output = "lm_head.weight";
std::vector<TensorMap> gpt2_tensors(const GptOptions& options);
// A buffer with the causal mask, which older versions stored among the weights.
bool is_gpt2_mask(std::string_view name);

}  // namespace bloomery
