#include "device/host_side.h"

#include "device/memory_source.h"

namespace bloomery {

HostSide::HostSide(Device& device) {
  const DeviceOptions& options = device.options();
  if (device.kind() == DeviceKind::cuda) {
    own_ = std::make_unique<Device>(DeviceOptions{.kind = DeviceKind::cpu,
                                                  .num_threads = options.num_threads,
                                                  .memory = host_memory(DeviceKind::cuda)});
    stream_ = std::make_unique<Stream>(*own_, StreamMode::queued);
  } else {
    stream_ = std::make_unique<Stream>(device, host_memory(device.kind()));
  }
}

}  // namespace bloomery
