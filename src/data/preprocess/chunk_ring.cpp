#include "data/preprocess/chunk_ring.h"

#include <chrono>
#include <utility>

namespace bloomery {

ChunkRing::ChunkRing(std::size_t slots, std::size_t max_bytes) : max_bytes_(max_bytes) {
  for (std::size_t i = 0; i < slots; ++i) {
    slots_.push_back(std::make_unique<ChunkSlot>());
  }
}

ChunkSlot* ChunkRing::slot_to_fill() {
  std::unique_lock lock(mutex_);
  can_fill_.wait(lock, [&] {
    return stopped_ || (filled_ - written_ < slots_.size() && bytes_ <= max_bytes_);
  });
  return stopped_ ? nullptr : &at(filled_);
}

void ChunkRing::publish() {
  const std::lock_guard lock(mutex_);
  ChunkSlot& slot = at(filled_++);
  slot.encoding_done = false;
  bytes_ += slot.lines.used;
  can_encode_.notify_one();
}

void ChunkRing::end() {
  const std::lock_guard lock(mutex_);
  ended_ = true;
  can_encode_.notify_all();
  can_write_.notify_all();
}

ChunkSlot* ChunkRing::slot_to_encode() {
  std::unique_lock lock(mutex_);
  can_encode_.wait(lock, [&] { return stopped_ || ended_ || next_to_encode_ < filled_; });
  return stopped_ || next_to_encode_ == filled_ ? nullptr : &at(next_to_encode_++);
}

void ChunkRing::encoded(ChunkSlot& slot) {
  const std::lock_guard lock(mutex_);
  slot.encoding_done = true;
  if (&slot == &at(written_)) {
    can_write_.notify_one();
  }
}

ChunkRing::Wait ChunkRing::wait_for_written(ChunkSlot*& slot) {
  std::unique_lock lock(mutex_);
  const auto is_done = [&] { return written_ < filled_ && at(written_).encoding_done; };
  const auto is_over = [&] { return stopped_ || (ended_ && written_ == filled_); };
  const bool ready = can_write_.wait_for(lock, std::chrono::milliseconds(100),
                                         [&] { return is_done() || is_over(); });
  if (!ready) {
    return Wait::timed_out;
  }
  if (is_over()) {
    return Wait::ended;
  }
  slot = &at(written_);
  return Wait::ready;
}

void ChunkRing::release() {
  const std::lock_guard lock(mutex_);
  ChunkSlot& slot = at(written_++);
  bytes_ -= slot.lines.used;
  can_fill_.notify_one();
}

void ChunkRing::stop(std::exception_ptr failure) {
  const std::lock_guard lock(mutex_);
  if (failure != nullptr && failure_ == nullptr) {
    failure_ = std::move(failure);
  }
  stopped_ = true;
  can_fill_.notify_all();
  can_encode_.notify_all();
  can_write_.notify_all();
}

void ChunkRing::check_failure() {
  const std::lock_guard lock(mutex_);
  if (failure_ != nullptr) {
    std::rethrow_exception(failure_);
  }
}

}  // namespace bloomery
