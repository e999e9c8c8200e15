// Where memory pools (memory.h) take their segments from: a device's own memory, or that of the
// host beside it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "device/device.h"

namespace bloomery {

class MemorySource {
 public:
  virtual ~MemorySource() = default;
  virtual void* allocate(std::size_t bytes) = 0;  // null when there is no more
  virtual void release(void* memory, std::size_t bytes) noexcept = 0;
  virtual std::size_t free_bytes() const = 0;
  virtual std::string where() const = 0;  // for messages: "on the GPU"

  // A number for the set of blocks that pools have handed out of this memory: equal numbers mean
  // the same set, and that no segment was given back in between. So whoever keeps addresses of
  // blocks that went back to their pool (a captured graph) knows that nobody else has them now.
  std::uint64_t in_use() const;
  // Pools say so: a block was handed out or taken back, a segment given back.
  void note_block(const void* block, std::size_t bytes) noexcept;
  void note_segment_given_back() noexcept { segments_given_back_ += 1; }

 private:
  std::atomic<std::uint64_t> blocks_{0};
  std::atomic<std::uint64_t> segments_given_back_{0};
};

// The memory of the device itself, no more than DeviceOptions::memory_limit.
std::shared_ptr<MemorySource> own_memory(const DeviceOptions& device);
// Memory of the host from which a device of this kind copies without staging.
std::shared_ptr<MemorySource> host_memory(DeviceKind device);

}  // namespace bloomery
