#include "device/file_memory.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"

namespace bloomery {

FileMemory::~FileMemory() {
  for (const auto& [at, segment] : segments_) {
    munmap(const_cast<char*>(at), segment.bytes);
  }
}

void* FileMemory::allocate(std::size_t bytes) {
  auto file = std::make_unique<ScratchFile>(folder_, bytes);
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file->descriptor(), 0);
  check(memory != MAP_FAILED, folder_, ": a file there cannot be mapped: ", std::strerror(errno));
  const std::lock_guard lock(mutex_);
  segments_[static_cast<const char*>(memory)] = {std::move(file), bytes};
  return memory;
}

void FileMemory::release(void* memory, std::size_t bytes) noexcept {
  munmap(memory, bytes);
  const std::lock_guard lock(mutex_);
  segments_.erase(static_cast<const char*>(memory));
}

std::size_t FileMemory::free_bytes() const {
  std::error_code failed;
  const auto space = std::filesystem::space(folder_, failed);
  return failed ? 0 : space.available;
}

std::string FileMemory::where() const { return concat("in files in ", folder_); }

FileMemory::Place FileMemory::place_of(const void* memory) {
  const auto* const at = static_cast<const char*>(memory);
  const std::lock_guard lock(mutex_);
  auto found = segments_.upper_bound(at);
  check(found != segments_.begin(), "memory that is in no file");
  --found;
  return {found->second.file.get(), static_cast<std::uint64_t>(at - found->first)};
}

}  // namespace bloomery
