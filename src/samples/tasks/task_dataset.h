// Samples of tasks, laid out as Megatron does: [CLS] first [SEP] second [SEP].
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "samples/dataset.h"
#include "samples/tasks/task_options.h"
#include "tokenizer/tokenizer.h"

namespace bloomery {

// A text or two that make one sequence, as ids. Passages are shared by all questions about them.
struct TaskTexts {
  std::vector<TokenId> first;
  std::shared_ptr<const std::vector<TokenId>> second;  // null: there is none
};

struct TaskSample {
  std::vector<TaskTexts> sequences;  // several: choices, or a question and passages
  std::int64_t hard = 0;             // of these passages: see question_sample.h
  std::int64_t uid = 0;
  std::int32_t label = 0;
  float score = 0;
};
using TaskSamples = std::vector<TaskSample>;

struct TaskTokens {
  TokenId cls = 0, sep = 0, pad = 0;
};
// An Error where the tokenizer has no such tokens.
TaskTokens task_tokens(const Tokenizer& tokenizer);

// Fills a sequence with the texts, cut to its length, and with padding; gives how many tokens are
// none. The type of a token is 1 from the second text on; padding has type 0.
std::int64_t lay_out(const TaskTexts& texts, const TaskTokens& special,
                     std::span<std::int32_t> tokens, std::span<std::int32_t> types);

// tokens, token_types and key_end of [length], or of choices [choices, length]; classes or scores;
// with `weights` also sample_weights. Of questions those of question_sample.h, with so many
// negatives.
SampleFields task_fields(const TaskKind& kind, std::int64_t length, bool weights,
                         std::int64_t negatives);

// Which sample is where. Every pass goes through the samples in an order of its own
// (torch.randperm after manual_seed(seed + pass)), or as they are, `batch` at a time. What is left
// over at its end is dropped or, with `keep_last`, a batch in which others stand with weight 0 for
// the samples that lack, so that its mean is that of the ones it has.
struct TaskOrder {
  bool shuffle = false, keep_last = false;
  std::int64_t seed = 0, batch = 1, passes = 1;

  std::int64_t batches_per_pass(std::int64_t samples) const {
    return keep_last ? (samples + batch - 1) / batch : samples / batch;
  }
};

class TaskDataset : public Dataset {
 public:
  struct Options {
    const TaskKind* kind = nullptr;
    std::int64_t length = 0;
    TaskTokens special;
    std::string name;
    std::int64_t negatives = 0;  // of a question
    bool draws = false;          // them by chance, anew in each pass, by the order's seed
  };
  TaskDataset(std::shared_ptr<const TaskSamples> samples, const Options& options,
              const TaskOrder& order);

  std::int64_t size() const override { return per_pass_ * order_.passes; }
  const SampleFields& fields() const override { return fields_; }
  void read(std::int64_t k, const Sample& out) const override;
  const std::string& description() const override { return options_.name; }

 private:
  // Where sample k is: the sample's number, and its place in which pass.
  struct Place {
    std::int64_t pass, place;
    std::size_t sample;
  };
  Place place_of(std::int64_t k) const;
  void read_question(const Place& place, const Sample& out) const;
  void read_texts(const Place& place, const Sample& out) const;

  std::shared_ptr<const TaskSamples> samples_;
  Options options_;
  TaskOrder order_;
  std::int64_t per_pass_;
  SampleFields fields_;
  std::vector<std::vector<std::uint32_t>> orders_;  // of each pass; empty: as they are
};

}  // namespace bloomery
