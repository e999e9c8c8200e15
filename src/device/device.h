// A device as one rank sees it: its memory source, its threads, and the per-device services (plan
// caches, library handles) that ops keep there. Nothing here is shared between ranks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <typeindex>
#include <unordered_map>

#include "base/thread_pool.h"

namespace bloomery {

class MemorySource;  // memory_source.h

// Abstract: shapes alone. Tensors have addresses that no memory stands behind, and nothing given to
// its streams happens; a pass over a model leaves what it would take, memory in the statistics of
// the pool and operations in FlopCount (launch.h).
enum class DeviceKind : std::uint8_t { cpu, cuda, abstract };

struct DeviceOptions {
  DeviceKind kind = DeviceKind::cpu;
  int index = 0;        // which GPU
  int num_threads = 0;  // of the rank's pool; 0: all usable cores
  // Of an abstract device: whose rules it follows where sizes depend on the kind.
  DeviceKind stands_for = DeviceKind::cpu;
  bool poison = false;  // fill memory with NaN patterns when it is handed out and taken back
  std::size_t memory_limit = 0;          // bytes that the rank may take there; 0: what there is
  std::shared_ptr<MemorySource> memory;  // null: the device's own
};

class Device {
 public:
  explicit Device(const DeviceOptions& options = {});
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  DeviceKind kind() const { return options_.kind; }
  // The kind whose rules decide sizes (chunks, scratch): its own, or what it stands for.
  DeviceKind rules() const { return kind() == DeviceKind::abstract ? options_.stands_for : kind(); }
  const DeviceOptions& options() const { return options_; }
  std::string description() const;  // "NVIDIA H200 (GPU 0)", "CPU, 2 threads, AVX-512"
  ThreadPool& pool() { return pool_; }
  const std::shared_ptr<MemorySource>& memory() const { return options_.memory; }

  // The one object of type Service of this device, made as Service(*this) at first use. For
  // library handles and plan caches; a service may be used from this rank's threads only.
  template <class Service>
  Service& service() {
    const std::lock_guard lock(services_mutex_);
    std::shared_ptr<void>& slot = services_[std::type_index(typeid(Service))];
    if (!slot) {
      slot = std::make_shared<Service>(*this);
    }
    return *static_cast<Service*>(slot.get());
  }

 private:
  DeviceOptions options_;
  ThreadPool pool_;
  std::recursive_mutex services_mutex_;
  std::unordered_map<std::type_index, std::shared_ptr<void>> services_;
};

// Number of CUDA devices that this process can use; 0 in a CPU build.
int num_cuda_devices();
// Unlike that of any other GPU, on this machine or another.
std::string device_identity(int index);
// Makes the GPU current for the calling thread; on a CPU nothing.
void use_device(const DeviceOptions& device);

// What the CPU kernels of this program may use here, decided once from the processor:
// 0 baseline, 1 AVX2 with FMA, 2 AVX-512, 3 AVX-512 with its conversions to bf16, but no more than
// the environment variable BLOOMERY_CPU_LEVEL says. Other architectures have level 0 only.
int cpu_level();
const char* cpu_level_name();

namespace raw {
std::size_t free_bytes(DeviceKind kind, int index);  // whatever limit a rank keeps to
}  // namespace raw

}  // namespace bloomery
