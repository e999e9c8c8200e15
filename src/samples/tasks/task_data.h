// The data of a task's run, from files to samples.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/generators/python_random.h"
#include "samples/tasks/question_sample.h"

namespace bloomery {

class TaskData {
 public:
  // Reads and encodes all files. An Error names the file and line of what is wrong. The training
  // files are left alone where there are no epochs.
  struct Options {
    TaskOptions task;
    std::int64_t length = 0, epochs = 0, global_batch = 1, seed = 0;
  };
  TaskData(const Options& options, const Tokenizer& tokenizer);

  const TaskKind& kind() const { return *kind_; }
  std::int64_t epochs() const { return options_.epochs; }
  std::int64_t steps_per_epoch() const;  // an Error where there are none

  // A file, or folder, to evaluate on.
  struct Set {
    std::string name, path;
    bool labelled = true;
    std::shared_ptr<const TaskSamples> samples;
  };
  const std::vector<Set>& sets() const { return sets_; }

  // All epochs, one after another.
  std::unique_ptr<Dataset> training() const;
  // All that is evaluated on, again and again, so many samples; null where there is nothing.
  std::unique_ptr<Dataset> validation(std::int64_t num_samples) const;
  // One set in order, and behind it some of it once more, up to whole batches of this size.
  std::unique_ptr<Dataset> of_set(const Set& set, std::int64_t batch) const;

  // What was read and left out.
  const std::vector<std::string>& report() const { return report_; }

 private:
  TaskSamples read(const std::string& path, const Tokenizer& tokenizer, bool& labelled);
  // Questions are one set, whatever the files, in the order in which Megatron evaluates them.
  void read_questions(const Tokenizer& tokenizer);
  TaskSamples questions_of(const std::vector<std::string>& paths, const KeptNegatives& kept,
                           Encoder& encoder, PythonRandom& random);
  TaskDataset::Options options_of(const std::string& name) const;
  std::int64_t validation_negatives() const;  // of a question, at most

  Options options_;
  const TaskKind* kind_;
  TaskTokens special_;
  std::shared_ptr<const TaskSamples> training_;
  std::vector<Set> sets_;
  std::vector<std::string> report_;
};

}  // namespace bloomery
