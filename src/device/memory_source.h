// Where memory pools (memory.h) take their segments from: a device's own memory, or that of the
// host beside it.
#pragma once

#include <cstddef>
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
};

// The memory of the device itself, no more than DeviceOptions::memory_limit.
std::shared_ptr<MemorySource> own_memory(const DeviceOptions& device);
// Memory of the host from which a device of this kind copies without staging.
std::shared_ptr<MemorySource> host_memory(DeviceKind device);

}  // namespace bloomery
