// The loop of pre-training, as one rank runs it: steps, evaluations, checkpoints, and when to end.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <memory>
#include <optional>

#include "train/finetune/task_epochs.h"
#include "train/profile/run_profile.h"
#include "train/run/run_checkpoints.h"
#include "train/run/run_log.h"
#include "train/run/skipped_steps.h"
#include "train/run/stragglers.h"
#include "train/run/timers.h"
#include "train/run/training_data.h"

namespace bloomery {

// What the ranks of a process share.
struct RunInputs {
  const PretrainOptions& options;
  const Plan& plan;
  const RunFacts& facts;
  DeviceOptions device;                          // of each rank
  const CheckpointReader* checkpoint = nullptr;  // to start from; null: random values
  std::string foreign_model;                     // or a Hugging Face folder; empty: none
  std::string schedule_refusal;                  // why the checkpoint's schedule does not do; empty
  // Called by the first rank when all have loaded what they start from and opened the data:
  // moves aside what --fork speaks of before --save is made or used, and keeps the command there.
  std::function<void()> make_room, keep_command;
  // The data, made by the first rank that asks; the others wait for it.
  std::function<const TrainingData&(RunLog&)> data;
  const TaskData* task = nullptr;        // that is trained for; null: none
  std::function<bool()> stop_requested;  // a signal came
  std::chrono::steady_clock::time_point start;
};

enum class RunEnd {
  finished,
  stopped,      // iterations remain, and a checkpoint, where --save asks for it, has what was done
  save_failed,  // finished or stopped, but the last state is on no disk
};

// What some rank read of the checkpoint is damaged, and the first rank finds it so too: no rank
// starts from it.
class DamagedCheckpoint : public Error {
 public:
  using Error::Error;
};

class Trainer {
 public:
  // Collective over `world`. Builds the rank, loads the checkpoint and opens the data. The inputs
  // and the log must outlive it. A DamagedCheckpoint comes to all ranks.
  Trainer(const RunInputs& inputs, std::unique_ptr<Communicator> world, RunLog& log);

  RunEnd run();

 private:
  using Clock = std::chrono::steady_clock;
  // For ranks that read much: indices of large corpora, large checkpoints.
  static constexpr double kLongSeconds = 24 * 3600;
  static double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  struct Pending {  // a step of which the outcome was not read yet
    Progress progress;
    std::int64_t global_batch;
  };

  void setup(std::unique_ptr<Communicator> world);
  void load();
  LoadedProgress load_together(LoadScope scope);
  [[noreturn]] void judge_damage(int rank, const std::string& damage);
  void load_foreign();
  void start_adapter(const std::filesystem::path& base);
  void begin_anew();
  void open_data();
  void prepare_reference();

  FeedOptions feed_options(std::int64_t first_sample) const;
  bool train();  // true: stopped while iterations remain
  void enqueue_step(BatchFeed& feed);
  void collect(std::size_t still_running);
  void take_outcome();
  void check_step(const StepFacts& facts);
  [[noreturn]] void give_up(const std::string& why);
  void report_rejected_choices();
  void report_timers(std::int64_t iteration);
  void report_graphs();
  void report_interval(std::int64_t iteration);
  bool after_step();
  bool wants_to_stop() const;
  bool is_over() const { return plan_.is_over(progress_.iteration, progress_.consumed_tokens); }

  bool evaluates(Split split) const;
  void evaluate(Split split, std::int64_t first_sample, bool at_end);
  void evaluate_at_end(Split split);
  void evaluate_task(std::int64_t epoch);
  void end_epoch();
  void notice_stop();
  void check_replicas();
  std::int64_t evaluation_samples() const;

  void begin_saving();
  void warn_of_room(const SaveRoom& room);
  void save();
  void await_saves();
  void report_saves();
  void stop_after_failed_saves();
  std::string not_saved() const;

  const RunInputs& inputs_;
  const PretrainOptions& options_;
  const Plan& plan_;
  RunLog& log_;
  std::unique_ptr<Rank> rank_;
  std::unique_ptr<Timers> timers_;
  const TrainingData* data_ = nullptr;
  std::unique_ptr<RunCheckpoints> checkpoints_;
  std::unique_ptr<RunProfile> profile_;  // if asked for
  std::unique_ptr<TaskEpochs> epochs_;   // of a task

  Progress progress_;
  std::deque<Pending> pending_;
  SkippedSteps skipped_;
  std::unique_ptr<Stragglers> stragglers_;  // with several ranks
  bool compares_replicas_ = false;
  bool stop_seen_ = false;        // some rank wished to stop; the same on all ranks
  std::int64_t timed_steps_ = 0;  // since the timers were set back
  bool memory_reported_ = false;
  bool graphs_reported_ = false;
  std::size_t told_rejected_ = 0;
  std::optional<std::int64_t> saved_;      // the iteration of the last save that was begun
  std::optional<std::int64_t> committed_;  // likewise, of what is on disk, as far as is known here
  std::optional<Progress> saving_;         // begun, and not awaited yet; on all ranks alike
  bool last_save_failed_ = false;          // when it was awaited: on all ranks alike
  std::int64_t failed_saves_ = 0;          // in a row, likewise
};

}  // namespace bloomery
