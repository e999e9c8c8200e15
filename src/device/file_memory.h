// Memory whose home is a file: mapped, so that anything can read and write it, and known by its
// place in the file, so that large ranges can pass by the cache of the system.
#pragma once

#include <map>
#include <mutex>

#include "base/block_io.h"
#include "device/memory_source.h"

namespace bloomery {

class FileMemory final : public MemorySource {
 public:
  // Files without names in a folder.
  explicit FileMemory(std::string folder) : folder_(std::move(folder)) {}
  ~FileMemory() override;

  void* allocate(std::size_t bytes) override;  // an Error if the disk has no room
  void release(void* memory, std::size_t bytes) noexcept override;
  std::size_t free_bytes() const override;
  std::string where() const override;

  struct Place {
    ScratchFile* file;
    std::uint64_t offset;
  };
  Place place_of(const void* memory);

 private:
  struct Segment {
    std::unique_ptr<ScratchFile> file;
    std::size_t bytes;
  };
  const std::string folder_;
  std::mutex mutex_;
  std::map<const char*, Segment> segments_;
};

}  // namespace bloomery
