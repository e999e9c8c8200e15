// The checkpoints of a run, as one rank takes part in them: what of the rank is saved under which
// name, and how it comes back.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "checkpoint/host_staging.h"
#include "checkpoint/model_record.h"
#include "checkpoint/reader.h"
#include "checkpoint/timeline.h"
#include "checkpoint/tokenizer_files.h"
#include "checkpoint/writer.h"
#include "train/plan/pretrain_options.h"
#include "train/step/rank.h"

namespace bloomery {

// How far a run is.
struct Progress {
  std::int64_t iteration = 0;         // steps taken or skipped
  std::int64_t consumed_samples = 0;  // of the training data
  std::int64_t consumed_tokens = 0;   // as a curriculum or random-LTD counts them
};

// What a checkpoint says besides the rank's own tensors and counters.
struct RunFacts {
  ModelRecord model;
  ScheduleOptions schedule;
  std::string options;  // JSON
  std::map<std::string, std::string> data_indices;
  std::shared_ptr<const std::vector<SnapshotFile>> tokenizer_files;
  std::string hf_origin;            // checkpoint/hf/hf_origin.h
  std::int64_t own_step = kNoStep;  // of the folder that is saved in, that the run goes on from
};

enum class LoadScope {
  everything,
  without_optimizer,  // --no-load-optim: weights and progress
  weights,            // --finetune
};

struct LoadedProgress {
  Progress progress;
  bool has_tokens = true;          // counted by the checkpoint
  std::vector<std::string> notes;  // what keeps the run from going on bit for bit

  // Where the checkpoint does not count tokens, a sample counts as so many.
  Progress counted(std::int64_t seq_length) const {
    return has_tokens ? progress
                      : Progress{progress.iteration, progress.consumed_samples,
                                 progress.consumed_samples * seq_length};
  }
};
// Reads what of a checkpoint is this rank's, checked as it comes; the numbers are the checkpoint's
// bit for bit. An Error names what does not fit; damage and errors of the storage are those of
// checkpoint/stored_file.h.
LoadedProgress load_checkpoint(Rank& rank, const CheckpointReader& reader, LoadScope scope);
// Makes values of the weights that were read. Collective: when all ranks could read theirs.
void take_over_loaded(Rank& rank);

class RunCheckpoints {
 public:
  // The rank and the facts must outlive it. Makes the folder, in which each rank that saves finds
  // out whether it can, and the host memory of the snapshots.
  RunCheckpoints(Rank& rank, const CheckpointFlags& flags, const RunFacts& facts);
  ~RunCheckpoints();

  // Of one checkpoint; nothing on ranks that hold what others save.
  const SaveRoom& room() const { return room_; }

  // Saves as SAVE/step-N, beside the next steps. Outcomes are to be fetched.
  void save(const Progress& progress);
  std::optional<SaveOutcome> poll();
  // Whether this rank saves nothing any more; waits up to so many seconds for that.
  bool wait_for(double seconds) { return !writer_ || writer_->wait_for(seconds); }

 private:
  void add_parameters();
  void add_weights(const std::string& name, const ParameterStore::Part& part);
  RunState state(const Progress& progress) const;

  Rank& rank_;
  CheckpointFlags flags_;
  const RunFacts& facts_;
  std::unique_ptr<Communicator> group_;
  HostStaging stage_;
  std::unique_ptr<CheckpointWriter> writer_;  // of ranks that hold what others do not
  SaveRoom room_;
};

}  // namespace bloomery
