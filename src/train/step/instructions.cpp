#include "train/step/instructions.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "train/plan/plan.h"

namespace bloomery {
namespace {

// The folder with the model's chat template, beside its tokenizer; empty where it has none.
std::string template_folder(const PretrainOptions& options) {
  namespace fs = std::filesystem;
  const TokenizerOptions& tokenizer = options.tokenizer;
  for (const std::string& path :
       {tokenizer.path, tokenizer.tokenizer_model, tokenizer.vocab_file, options.checkpoint.load}) {
    if (path.empty()) {
      continue;
    }
    const fs::path folder = fs::is_directory(path) ? fs::path(path) : fs::path(path).parent_path();
    if (find_chat_template(folder)) {
      return folder.empty() ? "." : folder.string();
    }
  }
  return "";
}

std::int64_t iterations_for(double samples, std::int64_t batch) {
  return std::max<std::int64_t>(1, std::llround(std::ceil(samples / static_cast<double>(batch))));
}

}  // namespace

std::int64_t tuning_log_interval(const PretrainOptions& options) {
  constexpr std::int64_t kLines = 20;
  const std::int64_t usual = LoggingOptions().interval;
  return std::clamp<std::int64_t>(options.length.iterations.value_or(usual * kLines) / kLines, 1,
                                  usual);
}

std::shared_ptr<const InstructData> read_instructions(const OptionTable& table,
                                                      PretrainOptions& options,
                                                      std::vector<std::string>& notes) {
  const std::shared_ptr<const Tokenizer> tokenizer = load_tokenizer(options.tokenizer);
  auto data = std::make_shared<const InstructData>(options.instruct, options.data, *tokenizer,
                                                   template_folder(options), options.seed);
  notes.insert(notes.end(), data->report().begin(), data->report().end());
  const std::int64_t batch = global_batch_size(options);
  const auto train = static_cast<double>(data->size(Split::train));
  if (options.instruct.epochs) {
    check(*options.instruct.epochs > 0, "--epochs 0 is for --task: give more than 0");
    check(train > 0, "the training data have no records: --data-path, --split and --only decide");
    options.length.iterations = iterations_for(train * *options.instruct.epochs, batch);
  }
  EvaluationOptions& evaluation = options.evaluation;
  if (!table.given("eval-iters")) {
    const std::int64_t valid = data->size(Split::valid);
    evaluation.iterations = valid == 0 ? 0 : iterations_for(static_cast<double>(valid), batch);
  }
  if (!table.given("eval-interval")) {
    evaluation.interval = iterations_for(train, batch);
  }
  return data;
}

}  // namespace bloomery
