#include "samples/tasks/task_data.h"

#include <algorithm>

#include "base/error.h"
#include "base/generators/torch_random.h"
#include "samples/tasks/task_text.h"

namespace bloomery {
namespace {

constexpr std::size_t kMostTokensOfQuestion = 128;  // with its answer

std::vector<TokenId> encoded(Encoder& encoder, const std::string& text) {
  std::vector<TokenId> ids;
  encoder.encode(text, ids);
  return ids;
}

TaskSamples samples_of(const std::vector<GlueRow>& rows, Encoder& encoder) {
  TaskSamples samples;
  for (const GlueRow& row : rows) {
    TaskTexts texts{.first = encoded(encoder, row.first)};
    if (row.second) {
      texts.second = std::make_shared<const std::vector<TokenId>>(encoded(encoder, *row.second));
    }
    TaskSample& sample = samples.emplace_back();
    sample.sequences.push_back(std::move(texts));
    sample.uid = row.uid;
    sample.label = row.label;
    sample.score = row.score;
  }
  return samples;
}

TaskSamples samples_of(const std::vector<RacePassage>& passages, Encoder& encoder) {
  TaskSamples samples;
  for (const RacePassage& passage : passages) {
    const auto article =
        std::make_shared<const std::vector<TokenId>>(encoded(encoder, passage.article));
    for (const RaceQuestion& question : passage.questions) {
      const auto uid = static_cast<std::int64_t>(samples.size());
      TaskSample& sample = samples.emplace_back();
      for (const std::string& choice : question.choices) {
        std::vector<TokenId> ids = encoded(encoder, choice);
        ids.resize(std::min(ids.size(), kMostTokensOfQuestion));
        sample.sequences.push_back({std::move(ids), article});
      }
      sample.uid = uid;
      sample.label = question.right;
    }
  }
  return samples;
}

// The samples of these numbers, in their order.
TaskSamples picked(TaskSamples samples, const std::vector<std::uint32_t>& numbers) {
  TaskSamples chosen;
  for (const std::uint32_t number : numbers) {
    chosen.push_back(std::move(samples[number]));
  }
  return chosen;
}

}  // namespace

TaskData::TaskData(const Options& options, const Tokenizer& tokenizer)
    : options_(options), kind_(&options.task.kind()), special_(task_tokens(tokenizer)) {
  if (kind_->answer == TaskAnswer::passage) {
    read_questions(tokenizer);
    return;
  }
  bool labelled = true;
  auto training = std::make_shared<TaskSamples>();
  for (const std::string& path :
       options_.epochs > 0 ? options_.task.train_data : std::vector<std::string>()) {
    TaskSamples more = read(path, tokenizer, labelled);
    check(labelled, path, ": its rows have no labels to train on");
    std::ranges::move(more, std::back_inserter(*training));
  }
  training_ = std::move(training);
  for (const std::string& path : options_.task.valid_data) {
    Set set{.name = set_name(*kind_, path), .path = path};
    set.samples = std::make_shared<const TaskSamples>(read(path, tokenizer, set.labelled));
    sets_.push_back(std::move(set));
  }
}

TaskSamples TaskData::questions_of(const std::vector<std::string>& paths, const KeptNegatives& kept,
                                   Encoder& encoder, PythonRandom& random) {
  TaskSamples samples;
  for (const std::string& path : paths) {
    const std::int64_t left_out = read_natural_questions(path, [&](const NaturalQuestion& each) {
      samples.push_back(question_sample(each, kept, options_.length, encoder));
      samples.back().uid = std::ssize(samples) - 1;
    });
    if (left_out > 0) {
      report_.push_back(concat(path, ": ", left_out,
                               " questions have no passage that answers them, and are left out"));
    }
  }
  const double rate = options_.task.questions.sample_rate;
  if (rate < 1) {
    const auto count = static_cast<std::uint32_t>(samples.size());
    const auto wanted = static_cast<std::uint32_t>(static_cast<double>(count) * rate);
    check(wanted > 0, "--sample-rate ", rate, " leaves none of ", count, " questions");
    return picked(std::move(samples), random.sample(count, wanted));
  }
  return samples;
}

void TaskData::read_questions(const Tokenizer& tokenizer) {
  const std::unique_ptr<Encoder> encoder = tokenizer.make_encoder({.parse_special = false});
  PythonRandom random(static_cast<std::uint64_t>(options_.seed));
  const QuestionOptions& o = options_.task.questions;
  training_ = std::make_shared<const TaskSamples>(
      options_.epochs == 0 ? TaskSamples()
                           : questions_of(options_.task.train_data,
                                          KeptNegatives::to_draw(o.negatives()), *encoder, random));
  if (options_.task.valid_data.empty()) {
    return;
  }
  const std::string& path = options_.task.valid_data.front();
  TaskSamples all = questions_of(options_.task.valid_data,
                                 KeptNegatives::first_of(o.rank_among_other, o.rank_among_hard),
                                 *encoder, random);
  const std::vector<std::uint32_t> order = torch_randperm(std::ssize(all), 0);
  sets_.push_back({.name = set_name(*kind_, path),
                   .path = path,
                   .samples = std::make_shared<const TaskSamples>(picked(std::move(all), order))});
}

std::int64_t TaskData::validation_negatives() const {
  std::size_t most = 0;
  for (const Set& set : sets_) {
    for (const TaskSample& sample : *set.samples) {
      most = std::max(most, all_negatives(sample).size());
    }
  }
  return static_cast<std::int64_t>(most);
}

TaskSamples TaskData::read(const std::string& path, const Tokenizer& tokenizer, bool& labelled) {
  const std::unique_ptr<Encoder> encoder = tokenizer.make_encoder({.parse_special = false});
  TaskSamples samples;
  labelled = true;
  if (kind_->answer == TaskAnswer::choice) {
    samples = samples_of(read_race(path), *encoder);
    check(!samples.empty(), path, ": there is no question in it");
  } else {
    const GlueFile file = read_glue(*kind_, path);
    samples = samples_of(file.rows, *encoder);
    labelled = file.labelled;
    report_.insert(report_.end(), file.notes.begin(), file.notes.end());
    if (!labelled) {
      report_.push_back(concat(path, ": its rows have no labels, and all count as ",
                               kind_->labels.empty() ? "0" : kind_->labels.front()));
    }
  }
  return samples;
}

std::int64_t TaskData::steps_per_epoch() const {
  const auto count = static_cast<std::int64_t>(training_->size());
  const TaskOrder order{.keep_last = options_.task.keep_last, .batch = options_.global_batch};
  const std::int64_t steps = order.batches_per_pass(count);
  check(steps > 0, "the training data have ", count, " samples, fewer than one batch of ",
        options_.global_batch, ": give --keep-last, or a smaller batch");
  return steps;
}

TaskDataset::Options TaskData::options_of(const std::string& name) const {
  const bool questions = kind_->answer == TaskAnswer::passage;
  return {.kind = kind_,
          .length = options_.length,
          .special = special_,
          .name = name,
          .negatives = questions ? validation_negatives() : 0};
}

std::unique_ptr<Dataset> TaskData::training() const {
  std::string name = concat(kind_->name, " training, seed ", options_.seed);
  for (const std::string& path : options_.task.train_data) {
    name += " " + path;
  }
  const QuestionOptions& questions = options_.task.questions;
  if (kind_->answer == TaskAnswer::passage) {
    name += concat(", negatives ", questions.negatives(), ", rate ", questions.sample_rate);
  }
  TaskDataset::Options options = options_of(name);
  options.negatives = questions.negatives();
  options.draws = true;
  return std::make_unique<TaskDataset>(training_, options,
                                       TaskOrder{.shuffle = true,
                                                 .keep_last = options_.task.keep_last,
                                                 .seed = options_.seed,
                                                 .batch = options_.global_batch,
                                                 .passes = options_.epochs});
}

std::unique_ptr<Dataset> TaskData::validation(std::int64_t num_samples) const {
  auto all = std::make_shared<TaskSamples>();
  for (const Set& set : sets_) {
    all->insert(all->end(), set.samples->begin(), set.samples->end());
  }
  if (all->empty()) {
    return nullptr;
  }
  const auto count = static_cast<std::int64_t>(all->size());
  return std::make_unique<TaskDataset>(std::move(all), options_of("validation"),
                                       TaskOrder{.passes = (num_samples + count - 1) / count});
}

std::unique_ptr<Dataset> TaskData::of_set(const Set& set, std::int64_t batch) const {
  return std::make_unique<TaskDataset>(set.samples, options_of(set.path),
                                       TaskOrder{.keep_last = true, .batch = batch});
}

}  // namespace bloomery
