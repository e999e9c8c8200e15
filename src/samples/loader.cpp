#include "samples/loader.h"

#include <utility>

#include "base/error.h"

namespace bloomery {

Loader::Loader(const Dataset& dataset, const Sampler& sampler, const LoaderOptions& options)
    : dataset_(dataset),
      sampler_(sampler),
      options_(options),
      consumed_(options.consumed_samples),
      spare_(std::make_shared<Spare>()),
      next_ticket_(options.consumed_samples) {
  check(options.num_workers >= 0 && options.num_ahead >= 1, "a loader needs at least 0 workers (",
        options.num_workers, " given) and 1 batch ahead (", options.num_ahead, " given)");
  if (options_.num_workers == 0) {
    return;
  }
  // Memory is made by the thread that owns the loader, which has its device chosen.
  for (int i = 0; i < options_.num_ahead; ++i) {
    free_.push_back(unused_batch());
  }
  try {
    for (int i = 0; i < options_.num_workers; ++i) {
      workers_.emplace_back([this] { work(); });
    }
  } catch (...) {
    stop();
    throw;
  }
}

Loader::~Loader() { stop(); }

void Loader::stop() noexcept {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  work_.notify_all();
  for (std::thread& worker : workers_) {
    worker.join();
  }
}

std::shared_ptr<const HostBatch> Loader::next() {
  if (failure_) {
    std::rethrow_exception(failure_);
  }
  if (!sampler_.has(consumed_)) {
    return nullptr;
  }
  Slot slot = options_.num_workers == 0 ? make(unused_batch(), consumed_) : wait_for(consumed_);
  if (slot.failure) {
    failure_ = slot.failure;
    std::rethrow_exception(failure_);
  }
  consumed_ += sampler_.options().block();
  const auto give_back = [spare = spare_](HostBatch* batch) {
    std::unique_ptr<HostBatch> owned(batch);
    const std::lock_guard lock(spare->mutex);
    spare->batches.push_back(std::move(owned));
  };
  return {slot.batch.release(), give_back};
}

// The batch after `consumed` samples; gives the workers other memory for it.
Loader::Slot Loader::wait_for(std::int64_t consumed) {
  std::unique_ptr<HostBatch> replacement = unused_batch();
  Slot slot;
  {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [&] { return made_.contains(consumed); });
    slot = std::move(made_.extract(consumed).mapped());
    free_.push_back(std::move(replacement));
  }
  work_.notify_one();
  return slot;
}

std::unique_ptr<HostBatch> Loader::unused_batch() {
  {
    const std::lock_guard lock(spare_->mutex);
    if (!spare_->batches.empty()) {
      std::unique_ptr<HostBatch> batch = std::move(spare_->batches.back());
      spare_->batches.pop_back();
      return batch;
    }
  }
  return std::make_unique<HostBatch>(options_.device, dataset_.fields(),
                                     sampler_.options().micro_batch_size);
}

// A ticket is taken together with the memory for it, so the earliest batch not yet made always has
// memory and next() cannot wait forever.
void Loader::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    work_.wait(lock, [&] { return stop_ || !free_.empty(); });
    if (stop_ || !sampler_.has(next_ticket_)) {
      return;
    }
    const std::int64_t ticket = next_ticket_;
    next_ticket_ += sampler_.options().block();
    std::unique_ptr<HostBatch> batch = std::move(free_.back());
    free_.pop_back();
    lock.unlock();
    Slot slot = make(std::move(batch), ticket);
    lock.lock();
    made_.emplace(ticket, std::move(slot));
    ready_.notify_one();
  }
}

Loader::Slot Loader::make(std::unique_ptr<HostBatch> batch, std::int64_t consumed) const {
  Slot slot;
  try {
    const SamplerOptions& sampler = sampler_.options();
    const std::vector<std::int64_t> chosen = sampler_.samples(consumed);
    const std::int64_t first = consumed + sampler.data_parallel_rank * sampler.micro_batch_size;
    for (std::int64_t i = 0; i < sampler.micro_batch_size; ++i) {
      dataset_.read(chosen[i], Sample(*batch, i));
      batch->samples()[i] = first + i;
    }
    slot.batch = std::move(batch);
  } catch (...) {
    slot.failure = std::current_exception();
  }
  return slot;
}

}  // namespace bloomery
