#include "checkpoint/writer.h"

#include <utility>

#include "base/error.h"
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
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    check(std::filesystem::is_directory(folder_), "cannot create the folder ", folder_.string(),
          " for checkpoints: ", error.message());
    lock_ = FileLock::try_lock(folder_ / kSaveLock);
    check(lock_ != nullptr, lock_holder(folder_ / kSaveLock), " saves its checkpoints in ",
          folder_.string(), "; end it or choose another folder");
    if (options_.own_step) {
      refuse_later_steps(folder_, *options_.own_step);
    }
    for (const std::string& name : remove_leftovers(folder_)) {
      Log().warning((folder_ / name).string(),
                    " was left by a process of another machine; remove it if that has ended");
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
  if (options_.asynchronous) {
    thread_ = std::thread(&CheckpointWriter::run, this, take());
    return;
  }
  run(take());
  const std::scoped_lock lock(mutex_);
  rethrow_failure();
}

std::optional<SaveOutcome> CheckpointWriter::poll() {
  const std::scoped_lock lock(mutex_);
  rethrow_failure();
  if (outcomes_.empty()) {
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
  try {
    SaveOutcome outcome = SaveTask(folder_, group_, options_, snapshot).run();
    snapshot.pieces.clear();  // its memory can be used again before anyone hears of the end
    const std::scoped_lock lock(mutex_);
    outcomes_.push_back(std::move(outcome));
  } catch (...) {
    const std::scoped_lock lock(mutex_);
    failure_ = std::current_exception();
  }
}

}  // namespace bloomery
