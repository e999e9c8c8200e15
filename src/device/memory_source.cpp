#include "device/memory_source.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "base/round_up.h"
#include "build_config.h"
#include "device/cuda.h"

namespace bloomery {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

void* allocate_on_cpu(std::size_t bytes) {
  // Linux promises memory that it does not have and kills the process later: refuse here instead.
  constexpr std::size_t kWorthAsking = std::size_t{64} << 20;
  const std::size_t available =
      bytes >= kWorthAsking ? raw::free_bytes(DeviceKind::cpu, 0) : std::size_t{0};
  if (available > 0 && bytes > available) {
    return nullptr;
  }
  // Large pages: with small ones a third of the time of a product can go into address translation.
  void* const memory = std::aligned_alloc(kHugePage, round_up(bytes, kHugePage));
  if (memory != nullptr) {
    madvise(memory, round_up(bytes, kHugePage), MADV_HUGEPAGE);  // advice only
  }
  return memory;
}

// Every bit of the result depends on every bit of `x` (the finalizer of splitmix64).
std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9U;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebU;
  return x ^ (x >> 31);
}

// Addresses that are nobody else's, and that nobody can use.
void* allocate_abstract(std::size_t bytes) {
  void* const addresses =
      mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  check(addresses != MAP_FAILED, "the memory of a step cannot be planned: that takes another ",
        bytes >> 20, " MiB of addresses, though none of the memory, and the system refuses them (",
        std::strerror(errno), "); lift the limit with `ulimit -v unlimited`");
  return addresses;
}

bool addresses_are_limited() {
  rlimit limit{};
  return getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
}

class OwnMemory final : public MemorySource {
 public:
  explicit OwnMemory(const DeviceOptions& device)
      : kind_(device.kind), index_(device.index), limit_(device.memory_limit) {}

  void* allocate(std::size_t bytes) override {
    if (limit_ > 0 && taken_.fetch_add(bytes) + bytes > limit_) {
      taken_ -= bytes;
      return nullptr;
    }
    void* const memory = take(bytes);
    if (memory == nullptr && limit_ > 0) {
      taken_ -= bytes;
    }
    return memory;
  }

  void release(void* memory, std::size_t bytes) noexcept override {
    taken_ -= limit_ > 0 ? bytes : 0;
    if (kind_ == DeviceKind::abstract) {
      munmap(memory, bytes);
      return;
    }
    if constexpr (build::cuda) {
      if (kind_ == DeviceKind::cuda) {
        return cuda::release(index_, memory);
      }
    }
    std::free(memory);
  }

  std::size_t free_bytes() const override {
    const std::size_t free = raw::free_bytes(kind_, index_);
    const std::size_t taken = taken_;
    return limit_ > 0 ? std::min(free, limit_ - std::min(limit_, taken)) : free;
  }

  std::string where() const override {
    const char* const device = kind_ == DeviceKind::cuda  ? "on the GPU"
                               : kind_ != DeviceKind::cpu ? "in the plan of a step"
                               : addresses_are_limited()  ? "on the CPU under `ulimit -v`"
                                                          : "on the CPU";
    return limit_ > 0 ? concat(device, " under --device-memory-limit") : device;
  }

 private:
  void* take(std::size_t bytes) const {
    if constexpr (build::cuda) {
      if (kind_ == DeviceKind::cuda) {
        return cuda::allocate(index_, bytes);
      }
    }
    return kind_ == DeviceKind::abstract ? allocate_abstract(bytes) : allocate_on_cpu(bytes);
  }

  const DeviceKind kind_;
  const int index_;
  const std::size_t limit_;
  std::atomic<std::size_t> taken_{0};  // counted where there is a limit
};

// Pinned memory. The driver takes long to pin it, and pools keep what they got.
class MemoryBesideGpu final : public MemorySource {
 public:
  void* allocate(std::size_t bytes) override {
    if (bytes > free_bytes()) {
      return nullptr;
    }
    if constexpr (build::cuda) {
      return cuda::allocate_pinned(bytes);
    }
    return nullptr;
  }
  void release(void* memory, std::size_t) noexcept override {
    if constexpr (build::cuda) {
      cuda::release_pinned(memory);
    }
    static_cast<void>(memory);
  }
  std::size_t free_bytes() const override { return raw::free_bytes(DeviceKind::cpu, 0); }
  std::string where() const override { return "in the memory of the host"; }
};

}  // namespace

std::uint64_t MemorySource::in_use() const { return blocks_ ^ mixed(segments_given_back_); }

// A block that comes back takes its number out of the sum again.
void MemorySource::note_block(const void* block, std::size_t bytes) noexcept {
  blocks_ ^= mixed(mixed(reinterpret_cast<std::uintptr_t>(block)) + bytes);
}

std::shared_ptr<MemorySource> own_memory(const DeviceOptions& device) {
  return std::make_shared<OwnMemory>(device);
}

std::shared_ptr<MemorySource> host_memory(DeviceKind device) {
  if (device == DeviceKind::cuda) {
    return std::make_shared<MemoryBesideGpu>();
  }
  return own_memory({.kind = device});
}

}  // namespace bloomery
