#include "checkpoint/hf/hf_form.h"

#include <algorithm>

#include "base/log.h"

namespace bloomery {
namespace {

// "GPT2" of GPT2LMHeadModel: older files name only the class.
std::string_view stem(std::string_view architecture) {
  return architecture.substr(0, std::min(architecture.find("For"), architecture.find("LMHead")));
}

struct FamilyForm {
  const Family* family = nullptr;
  const HuggingFace* form = nullptr;
};

std::vector<FamilyForm> all_forms() {
  std::vector<FamilyForm> all;
  for (const Family* family : families()) {
    for (const HuggingFace& form : family->hugging_face) {
      all.push_back({family, &form});
    }
  }
  return all;
}

// Of forms with one model_type that with the right class, or the first.
FamilyForm find_form(const HfConfig& config) {
  const std::string type = config.model_type(), architecture = config.architecture();
  FamilyForm found;
  for (const FamilyForm& each : all_forms()) {
    const bool named = type.empty() && !architecture.empty() &&
                       architecture.starts_with(stem(each.form->architecture));
    const bool fits = each.form->model_type == type || named;
    if (fits && (found.form == nullptr || each.form->architecture == architecture)) {
      found = each;
    }
  }
  return found;
}

HfConfig written(const HuggingFace& form, const ModelOptions& options, const HfTokenIds& tokens,
                 DType dtype) {
  HfConfig config(form.model_type, form.architecture, dtype);
  config.token_ids = tokens;
  ModelOptions copy = completed(options);
  form.config(config, copy);
  config.require(form.has_experts || !options.moe.any(), "it has experts");
  return config;
}

}  // namespace

HfModelConfig read_hf_config(std::string_view json, const std::string& source) {
  HfConfig config(json, source);
  const auto [family, form] = find_form(config);
  if (form == nullptr) {
    std::string known;
    std::string_view last;
    for (const FamilyForm& other : all_forms()) {
      if (std::string_view type = other.form->model_type; type != last) {
        known += concat(known.empty() ? "" : ", ", type);
        last = type;
      }
    }
    throw Error(
        concat(source, ": model_type '", config.model_type(), "' cannot be read; ", known, " can"));
  }
  HfModelConfig result{.form = form};
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
  std::vector<FamilyForm> order = all_forms();
  std::ranges::stable_partition(
      order, [&](const FamilyForm& each) { return each.family->name == options.family; });
  const auto blocks = find_family(options.family).blocks;
  std::string all;
  for (const auto& [family, form] : order) {
    if (family->blocks != blocks) {
      continue;
    }
    const std::vector<std::string> problems = hf_problems(*form, options);
    if (problems.empty()) {
      return *form;
    }
    all += concat("\n  no ", form->model_type, ":");
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
  for (const std::string& note : config.notes()) {
    Log().warning("config.json: ", note);
  }
  return config.text();
}

}  // namespace bloomery
