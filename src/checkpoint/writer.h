// Saves checkpoints so that SAVE/step-N appears whole or not at all, whenever the process is killed
// and whatever is full.
//
// Every rank of the run has a writer and calls save() for the same steps. A save: rank 0 asks for
// the space and makes step-N.tmp-...; each rank writes its pieces to a file of its own there and
// makes it durable; rank 0 writes the manifest, makes the folder durable and gives it its final
// name. That rename is the commit. A save that fails leaves nothing and is no exception: the run
// goes on, and the outcome, the same on all ranks, says why.
#pragma once

#include <condition_variable>
#include <deque>
#include <exception>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "base/file_lock.h"
#include "checkpoint/probe.h"
#include "checkpoint/save.h"

namespace bloomery {

class CheckpointWriter {
 public:
  // Creates the folder on rank 0. An Error when that is impossible, when another process saves
  // there, or when it holds later steps than SaveOptions::own_step.
  CheckpointWriter(std::filesystem::path folder, SaveGroup group, SaveOptions options);
  ~CheckpointWriter();  // waits for the save under way
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  // Collective, before the first save: see probe.h.
  SaveRoom probe(std::uint64_t bytes) const { return probe_save_folder(folder_, group_, bytes); }

  // Collective. Synchronous: returns when the save has ended. Asynchronous: waits for the save
  // before, if it is still under way, hands this one to a thread and returns. Either way the
  // outcome is to be fetched. Throws what kept an earlier save from ending (a rank that died).
  void save(Snapshot snapshot);
  // The same, with a snapshot that is taken when the save before has ended: the memory of that one
  // is free then and serves this one.
  void save(const std::function<Snapshot()>& take);

  // Whether no save is under way; waits up to so many seconds for that.
  bool wait_for(double seconds);

  // The next outcome that was not fetched yet, if there is one. When an asynchronous save ends
  // differs from rank to rank: collective decisions must not hang on it. Throws as save().
  std::optional<SaveOutcome> poll();
  // Waits for the save under way, then as poll().
  std::optional<SaveOutcome> finish();

 private:
  void run(Snapshot snapshot);
  void wait();
  void rethrow_failure();  // under the mutex

  const std::filesystem::path folder_;
  const SaveGroup group_;
  const SaveOptions options_;
  std::unique_ptr<FileLock> lock_;  // rank 0

  std::thread thread_;
  std::mutex mutex_;  // of what follows
  std::condition_variable idle_;
  bool busy_ = false;
  std::deque<SaveOutcome> outcomes_;
  std::exception_ptr failure_;
};

}  // namespace bloomery
