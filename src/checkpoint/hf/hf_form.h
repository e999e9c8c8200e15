// Which Hugging Face architecture a model has, and its config.json both ways.
#pragma once

#include <string>
#include <string_view>

#include "models/family.h"

namespace bloomery {

struct HfModelConfig {
  const HuggingFace* form = nullptr;
  ModelOptions options;  // completed
  HfTokenIds tokens;
};

// What a config.json says; absent keys have transformers' defaults. A value that would change
// numbers and that we do not compute, and anything malformed, is an Error that names all of them.
HfModelConfig read_hf_config(std::string_view json, const std::string& source);

// The architecture that computes what the model does: that of its own family, else of another one
// with the same blocks. An Error says for each why not.
const HuggingFace& hf_form(const ModelOptions& options);
// Why a form cannot say what the model is, one line each; empty when it can.
std::vector<std::string> hf_problems(const HuggingFace& form, const ModelOptions& options);

// config.json of a model whose weights are stored as `dtype`.
std::string hf_config_text(const HuggingFace& form, const ModelOptions& options,
                           const HfTokenIds& tokens, DType dtype);

}  // namespace bloomery
