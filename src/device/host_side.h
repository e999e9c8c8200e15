// The host beside a device: memory that the device copies from and to without staging, and a stream
// of work on it by the rank's threads. Beside a GPU that work is queued, and goes on while the rank
// gives the GPU further work; ranks of CPUs do it at once.
#pragma once

#include <memory>

#include "device/stream.h"

namespace bloomery {

class HostSide {
 public:
  // The device must outlive it.
  explicit HostSide(Device& device);

  Stream& stream() { return *stream_; }
  std::size_t used_bytes() const { return stream_->memory()->statistics().used_bytes; }
  std::size_t peak_bytes() const { return stream_->memory()->statistics().peak_used_bytes; }

 private:
  std::unique_ptr<Device> own_;  // beside a GPU
  std::unique_ptr<Stream> stream_;
};

}  // namespace bloomery
