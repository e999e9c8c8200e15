// Slots that go round from the reader to a worker to the writer and back, in the order of the
// input. Each slot keeps its memory, so that a run takes memory once.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <vector>

#include "data/preprocess/chunk_encoder.h"

namespace bloomery {

struct ChunkSlot {
  LineChunk lines;
  EncodedChunk encoded;
  bool encoding_done = false;
};

class ChunkRing {
 public:
  // The reader waits while the chunks under way have more than `max_bytes` of text together.
  ChunkRing(std::size_t slots, std::size_t max_bytes);

  // Of the reader: a slot to fill, nullptr after a stop. After filling it, publish() or end().
  ChunkSlot* slot_to_fill();
  void publish();
  void end();  // the slot got nothing: the input is over

  // Of a worker: a slot to encode, nullptr when there is none left.
  ChunkSlot* slot_to_encode();
  void encoded(ChunkSlot& slot);

  enum class Wait { ready, timed_out, ended };
  // Of the writer: waits a tenth of a second at most for the next slot in order.
  Wait wait_for_written(ChunkSlot*& slot);
  void release();  // the slot that wait_for_written gave

  // Lets everyone go. The first failure is kept; `check_failure` throws it.
  void stop(std::exception_ptr failure = nullptr);
  void check_failure();

  const std::atomic<bool>& stopped() const { return stopped_; }

 private:
  ChunkSlot& at(std::uint64_t number) { return *slots_[number % slots_.size()]; }

  std::vector<std::unique_ptr<ChunkSlot>> slots_;
  const std::size_t max_bytes_;
  std::mutex mutex_;
  std::condition_variable can_fill_, can_encode_, can_write_;
  // Numbers of chunks: written_ <= next_to_encode_ <= filled_.
  std::uint64_t filled_ = 0, next_to_encode_ = 0, written_ = 0;
  std::size_t bytes_ = 0;  // of text in the slots between reader and writer
  bool ended_ = false;
  std::atomic<bool> stopped_ = false;
  std::exception_ptr failure_;
};

}  // namespace bloomery
