// Prepares batches on threads of its own, ahead of the training step and in order.
#pragma once

#include <condition_variable>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "samples/dataset.h"
#include "samples/sampler.h"

namespace bloomery {

struct LoaderOptions {
  DeviceKind device = DeviceKind::cpu;
  int num_workers = 2;                // 0: next() does the work
  int num_ahead = 4;                  // batches ready or in work at most
  std::int64_t consumed_samples = 0;  // where to start
};

// next() is for one thread. The dataset and the sampler must outlive the loader; a batch that was
// handed out may outlive it.
class Loader {
 public:
  Loader(const Dataset& dataset, const Sampler& sampler, const LoaderOptions& options);
  ~Loader();  // waits for the batches in work
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // The next batch, or null when the data are used up. What went wrong while a batch was made is
  // thrown here when its turn comes, and again at every further call. The memory is used anew when
  // the last owner lets go: a copy to a device must be over by then.
  std::shared_ptr<const HostBatch> next();

  // Samples consumed by all ranks with the batches handed out: what a checkpoint keeps.
  std::int64_t consumed_samples() const { return consumed_; }

 private:
  struct Slot {
    std::unique_ptr<HostBatch> batch;
    std::exception_ptr failure;
  };
  // Memory of batches that their users are done with. Lives as long as any of them.
  struct Spare {
    std::mutex mutex;
    std::vector<std::unique_ptr<HostBatch>> batches;
  };

  void work();
  Slot make(std::unique_ptr<HostBatch> batch, std::int64_t consumed) const;
  Slot wait_for(std::int64_t consumed);
  std::unique_ptr<HostBatch> unused_batch();
  void stop() noexcept;

  const Dataset& dataset_;
  const Sampler& sampler_;
  const LoaderOptions options_;
  std::int64_t consumed_;
  std::shared_ptr<Spare> spare_;
  std::exception_ptr failure_;

  std::mutex mutex_;
  std::condition_variable work_, ready_;
  std::int64_t next_ticket_;                      // consumed samples before the next batch to make
  std::vector<std::unique_ptr<HostBatch>> free_;  // for workers to fill
  std::map<std::int64_t, Slot> made_;             // by consumed samples
  bool stop_ = false;
  std::vector<std::thread> workers_;
};

}  // namespace bloomery
