// What is done at the end of each epoch of a task's run: the answers of the model to all sets that
// it is evaluated on, Megatron's lines about them, and which epoch is the best so far.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "samples/tasks/task_data.h"
#include "train/finetune/task_lines.h"
#include "train/run/run_checkpoints.h"
#include "train/run/run_log.h"
#include "train/run/training_data.h"

namespace bloomery {

class TaskEpochs {
 public:
  static constexpr std::int64_t kNoTraining = -1;  // Megatron's epoch of an evaluation alone

  // `save` is the folder of the run; empty: nothing is written. What is known of epochs there up
  // to `progress` is taken over. The parts must outlive it.
  TaskEpochs(const TaskData& data, const PretrainOptions& options, const Plan& plan, Rank& rank,
             RunLog& log, const Progress& progress);

  // Number of the epoch that this iteration is the last one of.
  std::optional<std::int64_t> ended_by(std::int64_t iteration) const;
  bool evaluated(std::int64_t epoch) const;
  std::string beginning_line(std::int64_t iteration) const;  // empty: no epoch begins after it

  // Collective. `pause` is called between batches, `feed` gives the options of a feed that starts
  // with the first sample.
  void evaluate(std::int64_t epoch, const Progress& progress, const FeedOptions& feed,
                const std::function<void()>& pause);
  // Lets `best` in the run's folder point to the checkpoint of the best epoch, which is on disk by
  // now, and writes epochs.json. Of the first rank.
  void mark_best() const;

 private:
  struct Epoch {
    std::int64_t number = 0, iteration = 0;
    double score = 0;
    std::vector<SetScores> sets;
  };
  std::vector<TaskOutputs> answers(const TaskData::Set& set, std::int64_t completed_steps,
                                   const FeedOptions& feed, const std::function<void()>& pause);
  std::vector<TaskOutputs> gathered(const std::vector<float>& mine, std::int64_t num_samples) const;
  TaskScores scores_of(const TaskSamples& samples, const std::vector<TaskOutputs>& outputs) const;
  std::int64_t micro_batch() const;  // of evaluations
  std::int64_t batch() const;        // of all ranks
  void write_answers(const TaskData::Set& set, const std::vector<TaskOutputs>& answers) const;
  void read_epochs(std::int64_t until);
  void write_epochs() const;
  std::string to_json() const;
  const Epoch* best() const;  // null: there is none yet

  const TaskData& data_;
  const PretrainOptions& options_;
  const Plan& plan_;
  Rank& rank_;
  RunLog& log_;
  std::int64_t steps_;  // of an epoch
  std::vector<Epoch> epochs_;
};

}  // namespace bloomery
