#include "train/finetune/tasks.h"

#include "train/plan/plan.h"

namespace bloomery {

std::shared_ptr<const TaskData> read_task(PretrainOptions& options,
                                          std::vector<std::string>& notes) {
  const std::shared_ptr<const Tokenizer> tokenizer = load_tokenizer(options.tokenizer);
  const auto epochs = static_cast<std::int64_t>(options.instruct.epochs.value_or(0));
  auto data =
      std::make_shared<const TaskData>(TaskData::Options{.task = options.task,
                                                         .length = options.data.seq_length,
                                                         .epochs = epochs,
                                                         .global_batch = global_batch_size(options),
                                                         .seed = options.seed},
                                       *tokenizer);
  notes.insert(notes.end(), data->report().begin(), data->report().end());
  if (epochs > 0) {
    options.length.iterations = epochs * data->steps_per_epoch();
  }
  return data;
}

}  // namespace bloomery
