#include "device/device.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "base/error.h"
#include "build_config.h"
#include "device/cuda.h"
#include "device/memory_source.h"

namespace bloomery {
namespace {

int detect_cpu_level() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512cd")) {
    return __builtin_cpu_supports("avx512bf16") ? 3 : 2;
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi2")) {
    return 1;
  }
#endif
  return 0;
}

void check_gpu(int index) {
  check(build::cuda,
        "this bloomery was built without CUDA: build with `make cuda`, or use the CPU");
  const int count = num_cuda_devices();
  check(count > 0, "no GPU can be used here: `bloomery doctor` says whether the driver or ",
        "CUDA_VISIBLE_DEVICES hides it; or give --device cpu");
  check(index >= 0 && index < count, "GPU ", index, " was asked for, but this machine shows ",
        count, count == 1 ? " GPU" : " GPUs",
        ": check the driver with nvidia-smi and CUDA_VISIBLE_DEVICES");
}

}  // namespace

int cpu_level() {
  static const int level = [] {
    const char* const most = std::getenv("BLOOMERY_CPU_LEVEL");
    const std::string text = most == nullptr ? "" : most;
    check(text.size() <= 1 && text.find_first_not_of("0123") == std::string::npos,
          "BLOOMERY_CPU_LEVEL is '", text, "': set it to 0, 1, 2 or 3, or not at all");
    return text.empty() ? detect_cpu_level() : std::min(text[0] - '0', detect_cpu_level());
  }();
  return level;
}

const char* cpu_level_name() {
  constexpr const char* kNames[] = {"baseline", "AVX2", "AVX-512", "AVX-512 with bf16"};
  return kNames[cpu_level()];
}

int num_cuda_devices() {
  if constexpr (build::cuda) {
    return cuda::num_devices();
  }
  return 0;
}

std::string device_identity(int index) {
  if constexpr (build::cuda) {
    check_gpu(index);
    return cuda::device_uuid(index);
  }
  return std::to_string(index);
}

void use_device(const DeviceOptions& device) {
  if constexpr (build::cuda) {
    if (device.kind == DeviceKind::cuda) {
      check_gpu(device.index);
      cuda::use_device(device.index);
    }
  }
}

Device::Device(const DeviceOptions& options)
    : options_(options), pool_(options.kind == DeviceKind::abstract ? 1 : options.num_threads) {
  if (options_.kind == DeviceKind::cuda) {
    check_gpu(options_.index);
  }
  if (!options_.memory) {
    options_.memory = own_memory(options_);
  }
}

std::string Device::description() const {
  if (options_.kind == DeviceKind::abstract) {
    return "abstract device (shapes without memory)";
  }
  if constexpr (build::cuda) {
    if (options_.kind == DeviceKind::cuda) {
      return concat(cuda::device_name(options_.index), " (GPU ", options_.index, ")");
    }
  }
  return concat("CPU, ", pool_.num_threads(), pool_.num_threads() == 1 ? " thread, " : " threads, ",
                cpu_level_name());
}

namespace raw {

std::size_t free_bytes(DeviceKind kind, int index) {
  if constexpr (build::cuda) {
    if (kind == DeviceKind::cuda) {
      check_gpu(index);
      return cuda::free_bytes(index);
    }
  }
  static_cast<void>(kind);
  static_cast<void>(index);
  // What the kernel could hand out without killing anyone; freeram leaves out the page cache.
  std::ifstream file("/proc/meminfo");
  std::string word;
  while (file >> word) {
    if (std::size_t kibibytes = 0; word == "MemAvailable:" && file >> kibibytes) {
      return kibibytes * 1024;
    }
  }
  return 0;
}

}  // namespace raw

}  // namespace bloomery
