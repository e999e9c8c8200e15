// Stream-ordered caching memory. Each stream has one pool; a block given back is handed out again
// at once, because whatever the stream was still doing with it comes before its next use there.
// Memory that another stream uses must be kept until the owning stream has waited for that use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "device/device.h"

namespace bloomery {

class MemorySource;
class Stream;

struct MemoryStatistics {
  std::size_t used_bytes = 0;       // in blocks that are handed out
  std::size_t peak_used_bytes = 0;  // since the last reset
  std::size_t reserved_bytes = 0;   // taken from the device
  std::size_t peak_reserved_bytes = 0;
  std::int64_t num_device_calls = 0;  // allocations that had to ask the device
};

// Splits large segments of device memory into blocks: best fit, neighbours merged on return.
class MemoryPool {
 public:
  // When what the stream is told to do with a block happens: before the call returns, or perhaps
  // after the block was released.
  enum class Use { at_once, queued };
  // Blocks are filled with NaN patterns on `poison_on`, in its order, when they are handed out and
  // taken back; null: never. In builds with AddressSanitizer CPU memory that is used at once is out
  // of bounds beyond the bytes that were asked for, and after its release.
  MemoryPool(DeviceKind kind, std::shared_ptr<MemorySource> source, Use use, Stream* poison_on);
  ~MemoryPool();
  MemoryPool(const MemoryPool&) = delete;
  MemoryPool& operator=(const MemoryPool&) = delete;

  // Aligned to 512 bytes. Throws Error naming the sizes when the device has no more.
  void* allocate(std::size_t bytes);
  void release(void* memory) noexcept;

  // While on, what is released is not handed out again: for who reads it later than the stream's
  // order says.
  void hold(bool on) noexcept;

  MemoryStatistics statistics() const;
  void reset_peak();
  void trim();            // gives wholly free segments back to the device
  void stop_poisoning();  // the stream ends; memory may come back later

 private:
  struct Block {
    std::size_t bytes;
    void* segment;  // start of the segment the block was cut from
    bool free;
  };
  using Blocks = std::map<char*, Block>;

  Blocks::iterator find_fit(std::size_t bytes);
  Blocks::iterator add_segment(std::size_t bytes);
  void poison_block(void* memory, std::size_t bytes);
  // Tells AddressSanitizer that of these bytes only the first `valid` may be touched.
  void set_bounds(void* memory, std::size_t valid, std::size_t bytes) const;
  void release_locked(void* memory) noexcept;
  void trim_locked();

  const std::shared_ptr<MemorySource> source_;
  [[maybe_unused]] const bool guarded_;  // by AddressSanitizer
  mutable std::mutex mutex_;
  Stream* poison_on_;
  Blocks blocks_;
  std::set<std::pair<std::size_t, char*>> free_;  // by size, then address: a deterministic choice
  std::map<void*, std::size_t> segments_;
  MemoryStatistics statistics_;
  bool holding_ = false;
  std::vector<void*> held_;  // released since
};

// A piece of pool memory, returned when the last owner lets go.
class Storage {
 public:
  Storage(std::shared_ptr<MemoryPool> pool, std::size_t bytes)
      : pool_(std::move(pool)), data_(pool_->allocate(bytes)), bytes_(bytes) {}
  ~Storage() { pool_->release(data_); }
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::shared_ptr<MemoryPool> pool_;
  void* data_;
  std::size_t bytes_;
};

// Host memory from which a GPU copies without staging; ordinary memory in a CPU process.
class PinnedMemory {
 public:
  PinnedMemory(DeviceKind kind, std::size_t bytes);
  ~PinnedMemory();
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  DeviceKind kind_;
  void* data_;
  std::size_t bytes_;
};

}  // namespace bloomery
