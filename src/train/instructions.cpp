#include "train/instructions.h"

#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "train/options/plan.h"

namespace bloomery {
namespace {

// The folder with the model's chat template: that of its tokenizer.
std::string template_folder(const PretrainOptions& options) {
  for (const std::string& path : {options.tokenizer.path, options.checkpoint.load}) {
    if (!path.empty() && std::filesystem::is_directory(path) && find_chat_template(path)) {
      return path;
    }
  }
  const std::filesystem::path file = options.tokenizer.path;
  return file.has_parent_path() ? file.parent_path().string() : "";
}

std::int64_t iterations_for(double samples, std::int64_t batch) {
  return std::max<std::int64_t>(1, std::llround(std::ceil(samples / static_cast<double>(batch))));
}

}  // namespace

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
    check(train > 0, "there are no records to train on");
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
