// What the tests of tasks share: a small model with a tokenizer, and its log probabilities computed
// one sequence at a time from raw logits, in double.
#pragma once

#include <cmath>
#include <filesystem>
#include <memory>

#include "base/temporary_folder.h"
#include "checkpoint/model_source_case.h"
#include "evaluate/scorer.h"
#include "generate/loaded_model.h"

namespace bloomery {

class TaskFolder {
 public:
  TaskFolder() {
    const TokenizerOptions tokenizer = write_small_tokenizer(folder_.path() / "words");
    Device device({.num_threads = 1});
    Stream stream(device);
    save_checkpoint(folder_.path() / "save", 1, {small_gpt(), tokenizer, DType::fp32},
                    random_weights(stream, small_gpt(), DType::fp32));
    model_ = std::make_unique<LoadedModel>(
        LoadOptions{.path = folder_.path() / "save", .device = {.num_threads = 2}});
  }

  LoadedModel& model() { return *model_; }
  std::string file(const std::string& name, std::string_view contents) const {
    return folder_.file(name, contents).string();
  }
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }

  std::vector<TokenId> encode(std::string_view text) {
    std::vector<TokenId> ids;
    model_->tokenizer().make_encoder(model_->encode_options())->encode(text, ids);
    return ids;
  }

  // Row t: ln p of every real token after tokens[0..t].
  std::vector<std::vector<double>> log_probabilities(std::span<const TokenId> tokens) {
    const Batch batch = upload_tokens(model_->stream(), std::vector{tokens});
    Context context = model_->context(batch);
    const Tensor logits = model_->model().forward(context).stream.data;
    const std::vector<float> all = logits.to_host<float>(model_->stream());
    const auto columns = static_cast<std::size_t>(logits.shape().back());
    const auto real = static_cast<std::size_t>(model_->options().vocabulary.size);
    std::vector<std::vector<double>> rows;
    for (std::size_t t = 0; t < tokens.size(); ++t) {
      std::vector<double>& row =
          rows.emplace_back(all.begin() + static_cast<std::ptrdiff_t>(t * columns),
                            all.begin() + static_cast<std::ptrdiff_t>(t * columns + real));
      double sum = 0;
      for (const double value : row) {
        sum += std::exp(value);
      }
      for (double& value : row) {
        value -= std::log(sum);
      }
    }
    return rows;
  }

  // Of the last `scored` tokens, each given all before it.
  double nll(std::span<const TokenId> tokens, std::size_t scored) {
    const auto rows = log_probabilities(tokens.first(tokens.size() - 1));
    double sum = 0;
    for (std::size_t t = tokens.size() - scored; t < tokens.size(); ++t) {
      sum -= rows[t - 1][static_cast<std::size_t>(tokens[t])];
    }
    return sum;
  }

 private:
  TemporaryFolder folder_;
  std::unique_ptr<LoadedModel> model_;
};

}  // namespace bloomery
