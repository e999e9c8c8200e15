#include <algorithm>
#include <cstring>

#include "base/file.h"
#include "checkpoint/hf/hf_model.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;

HfModelConfig read_config(const fs::path& folder) {
  check(fs::is_directory(folder), folder.string(), " is no folder");
  const fs::path path = folder / "config.json";
  check(fs::exists(path), folder.string(),
        ": config.json is missing; a Hugging Face model has one");
  return read_hf_config(read_file(path), path.string());
}

// Without the prefix, and with the new names of what old files call the gamma and beta of a norm.
std::string plain_name(const HuggingFace& form, const std::string& name) {
  std::string plain = name.starts_with(form.prefix) ? name.substr(form.prefix.size()) : name;
  for (const auto& [before, after] : {std::pair{"LayerNorm.gamma", "LayerNorm.weight"},
                                      std::pair{"LayerNorm.beta", "LayerNorm.bias"}}) {
    if (plain.ends_with(before)) {
      plain.replace(plain.size() - std::string_view(before).size(), plain.npos, after);
    }
  }
  return plain;
}

bool is_ignored(const HuggingFace& form, const std::string& name) {
  return std::ranges::any_of(form.ignored,
                             [&](std::string_view ending) { return name.ends_with(ending); });
}

std::string_view embedding_name(const HuggingFace& form) {
  return std::ranges::find(form.tensors, "embedding.tokens.weight", &TensorRule::ours)->theirs;
}

// The first few lines of many.
class Problems {
 public:
  template <class... Parts>
  void add(const Parts&... parts) {
    constexpr int kShown = 5;
    if (++count_ <= kShown) {
      lines_ += concat("\n  ", parts...);
    } else if (count_ == kShown + 1) {
      lines_ += "\n  and more";
    }
  }
  const std::string& lines() const { return lines_; }

 private:
  int count_ = 0;
  std::string lines_;
};

bool equal(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

}  // namespace

HfFolder::HfFolder(Stream& stream, const fs::path& folder)
    : stream_(stream), folder_(folder), config_(read_config(folder)), weights_(folder) {
  check(!stream.on_cuda(), "models are read on the CPU");
  find_tensors();
  settle_output();
  require_all();
}

void HfFolder::find_tensors() {
  for (const auto& [name, entry] : weights_.entries()) {
    const std::string plain = plain_name(*config_.form, name);
    if (is_ignored(*config_.form, plain)) {
      continue;
    }
    const auto [known, fresh] = stored_.emplace(plain, name);
    check(fresh, weights_.source().string(), ": ", known->second, " and ", name,
          " are the same tensor");
  }
}

// A tied output need not be stored, but may be. As in transformers, one that differs from the
// embedding is a weight of its own, and one without the embedding stands for both.
void HfFolder::settle_output() {
  const std::string output(config_.form->output), embedding(embedding_name(*config_.form));
  const auto found = stored_.find(output);
  if (options().vocabulary.untied || found == stored_.end()) {
    return;
  }
  const auto table = stored_.find(embedding);
  if (table == stored_.end()) {
    stored_.emplace(embedding, found->second);
    stored_.erase(output);
  } else if (equal(weights_.read(stream_, found->second), weights_.read(stream_, table->second))) {
    stored_.erase(output);
  } else {
    config_.options.vocabulary.untied = true;
  }
}

void HfFolder::require_all() {
  Problems problems;
  // Each block has several tensors: a number of blocks beyond that would only make a long list.
  const auto count = static_cast<std::int64_t>(weights_.entries().size());
  check(Model::num_blocks(options()) - 4 <= count, weights_.source().string(), ": has ", count,
        " tensors, too few for the layers of config.json");
  tensors_ = expand(config_.form->tensors, options());
  std::map<std::string, std::string> unknown = stored_;
  for (const TensorMap& tensor : tensors_) {
    for (const TensorMap::Part& part : tensor.parts) {
      unknown.erase(part.theirs);
      const auto found = stored_.find(part.theirs);
      if (found == stored_.end()) {
        problems.add(part.theirs, " is missing");
        continue;
      }
      const WeightFile::Entry& entry = weights_.entries().at(found->second);
      if (!(entry.shape == part.their_shape)) {
        problems.add(found->second, " is ", entry.shape, ", but config.json asks for ",
                     part.their_shape);
      } else if (!entry.dtype || !is_floating(*entry.dtype)) {
        problems.add(found->second, " is ", entry.type, ", no floating-point type of ours");
      }
    }
  }
  for (const auto& [name, stored] : unknown) {
    problems.add(stored, " is no tensor of this ", config_.form->model_type);
  }
  check(problems.lines().empty(), weights_.source().string(),
        ": does not fit config.json:", problems.lines());
}

Tensor HfFolder::read_unused(std::string_view ours) const {
  const auto rule = std::ranges::find(config_.form->tensors, ours, &TensorRule::ours);
  for (const auto& [name, entry] : weights_.entries()) {
    if (rule != config_.form->tensors.end() && plain_name(*config_.form, name) == rule->theirs &&
        entry.dtype && is_floating(*entry.dtype)) {
      return weights_.read(stream_, name);
    }
  }
  return {};
}

DType HfFolder::dtype(const TensorMap& tensor) const {
  return *weights_.entries().at(stored_.at(tensor.parts[0].theirs)).dtype;
}

Tensor HfFolder::read(const TensorMap& tensor) const {
  std::vector<Tensor> parts;
  for (const TensorMap::Part& part : tensor.parts) {
    parts.push_back(weights_.read(stream_, stored_.at(part.theirs)));
  }
  return to_ours(stream_, tensor, parts);
}

HfModel read_hf(Stream& stream, const fs::path& folder) {
  const HfFolder opened(stream, folder);
  HfModel model{.options = opened.options(), .tokens = opened.tokens()};
  for (const TensorMap& tensor : opened.tensors()) {
    model.tensors.emplace(tensor.ours, opened.read(tensor));
  }
  return model;
}

}  // namespace bloomery
