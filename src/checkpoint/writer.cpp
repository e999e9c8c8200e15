#include "checkpoint/writer.h"

#include <utility>

#include "base/error.h"
#include "base/folder.h"
#include "base/stop_signals.h"
#include "checkpoint/timeline.h"

namespace bloomery {

CheckpointWriter::CheckpointWriter(std::filesystem::path folder, SaveGroup group,
                                   SaveOptions options)
    : folder_(std::move(folder)), group_(std::move(group)), options_(options) {
  check_keep(options_.keep);
  check(options_.file.block_bytes % 4096 == 0 && options_.file.block_bytes > 0,
        "blocks of checkpoint files must be whole pages, not ", options_.file.block_bytes,
        " bytes");
  if (group_.rank == 0) {
    try {
      create_folders(folder_);
    } catch (const std::exception& error) {
      throw Error(concat("cannot create the folder ", folder_.string(),
                         " for checkpoints; give another --save: ", error.what()));
    }
    lock_ = FileLock::try_lock(folder_ / kSaveLock);
    check(lock_ != nullptr, lock_holder(folder_ / kSaveLock), " saves its checkpoints in ",
          folder_.string(), "; end it or choose another folder");
    if (options_.own_step) {
      refuse_later_steps(folder_, *options_.own_step);
    }
    std::vector<std::string> left;
    retry({}, [&] { left = remove_leftovers(folder_); });
    for (const std::string& name : left) {
      Log().warning((folder_ / name).string(),
                    " was left by a process of another machine; remove it if that has ended, or "
                    "leave it: it goes a day after its last change");
    }
  }
}

CheckpointWriter::~CheckpointWriter() { wait(); }

void CheckpointWriter::wait() {
  if (thread_.joinable()) {
    thread_.join();
  }
}

void CheckpointWriter::rethrow_failure() {
  if (failure_) {
    std::rethrow_exception(std::exchange(failure_, nullptr));
  }
}

void CheckpointWriter::save(Snapshot snapshot) {
  save([&] { return std::move(snapshot); });
}

void CheckpointWriter::save(const std::function<Snapshot()>& take) {
  wait();
  {
    const std::scoped_lock lock(mutex_);
    rethrow_failure();
  }
  Snapshot snapshot = take();
  {
    const std::scoped_lock lock(mutex_);
    busy_ = true;
  }
  if (options_.asynchronous) {
    thread_ = std::thread(&CheckpointWriter::run, this, std::move(snapshot));
    return;
  }
  run(std::move(snapshot));
  const std::scoped_lock lock(mutex_);
  rethrow_failure();
}

bool CheckpointWriter::wait_for(double seconds) {
  std::unique_lock lock(mutex_);
  return idle_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return !busy_; });
}

std::optional<SaveOutcome> CheckpointWriter::poll() {
  const std::scoped_lock lock(mutex_);
  if (outcomes_.empty()) {
    rethrow_failure();
    return std::nullopt;
  }
  SaveOutcome outcome = std::move(outcomes_.front());
  outcomes_.pop_front();
  return outcome;
}

std::optional<SaveOutcome> CheckpointWriter::finish() {
  wait();
  return poll();
}

void CheckpointWriter::run(Snapshot snapshot) {
  const UninterruptedWork save;
  std::optional<SaveOutcome> outcome;
  std::exception_ptr failure;
  try {
    outcome = SaveTask(folder_, group_, options_, snapshot).run();
  } catch (...) {
    failure = std::current_exception();
  }
  snapshot.pieces.clear();  // its memory can be used again before anyone hears of the end
  const std::scoped_lock lock(mutex_);
  if (outcome) {
    outcomes_.push_back(std::move(*outcome));
  }
  failure_ = failure;
  busy_ = false;
  idle_.notify_all();
}

}  // namespace bloomery
