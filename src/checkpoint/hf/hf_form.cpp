#include "checkpoint/hf/hf_form.h"

#include <algorithm>

namespace bloomery {
namespace {

// "GPT2" of GPT2LMHeadModel: older files name only the class.
std::string_view stem(std::string_view architecture) {
  return architecture.substr(0, std::min(architecture.find("For"), architecture.find("LMHead")));
}

const Family* find_form(const HfConfig& config) {
  const std::string type = config.model_type(), architecture = config.architecture();
  for (const Family* family : families()) {
    const HuggingFace* form = family->hugging_face;
    const bool named = form != nullptr && type.empty() && !architecture.empty() &&
                       architecture.starts_with(stem(form->architecture));
    if (form != nullptr && (form->model_type == type || named)) {
      return family;
    }
  }
  return nullptr;
}

HfConfig written(const HuggingFace& form, const ModelOptions& options, const HfTokenIds& tokens,
                 DType dtype) {
  HfConfig config(form.model_type, form.architecture, dtype);
  config.token_ids = tokens;
  ModelOptions copy = completed(options);
  form.config(config, copy);
  return config;
}

}  // namespace

HfModelConfig read_hf_config(std::string_view json, const std::string& source) {
  HfConfig config(json, source);
  const Family* family = find_form(config);
  if (family == nullptr) {
    std::string known;
    for (const Family* other : families()) {
      if (other->hugging_face != nullptr) {
        known += concat(known.empty() ? "" : ", ", other->hugging_face->model_type);
      }
    }
    throw Error(
        concat(source, ": model_type '", config.model_type(), "' cannot be read; ", known, " can"));
  }
  HfModelConfig result{.form = family->hugging_face};
  result.options.family = family->name;
  result.form->config(config, result.options);
  config.finish();
  result.options = completed(result.options);
  result.tokens = config.token_ids;
  return result;
}

std::vector<std::string> hf_problems(const HuggingFace& form, const ModelOptions& options) {
  return written(form, options, {}, DType::fp32).problems();
}

const HuggingFace& hf_form(const ModelOptions& options) {
  std::vector<const Family*> order = families();
  std::ranges::stable_partition(
      order, [&](const Family* family) { return family->name == options.family; });
  const auto blocks = find_family(options.family).blocks;
  std::string all;
  for (const Family* family : order) {
    if (family->hugging_face == nullptr || family->blocks != blocks) {
      continue;
    }
    const std::vector<std::string> problems = hf_problems(*family->hugging_face, options);
    if (problems.empty()) {
      return *family->hugging_face;
    }
    all += concat("\n  no ", family->hugging_face->model_type, ":");
    for (const std::string& problem : problems) {
      all += concat(" ", problem, ";");
    }
    all.back() = '.';
  }
  throw Error(concat("this model has no Hugging Face form here", all.empty() ? "" : ":", all));
}

std::string hf_config_text(const HuggingFace& form, const ModelOptions& options,
                           const HfTokenIds& tokens, DType dtype) {
  const HfConfig config = written(form, options, tokens, dtype);
  config.finish();
  return config.text();
}

}  // namespace bloomery
