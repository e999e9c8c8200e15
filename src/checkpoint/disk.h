// What a crash-safe save asks of the file system beyond files.
#pragma once

#include <cstdint>
#include <filesystem>

namespace bloomery {

// Makes the names in a folder durable. Failures are std::runtime_error.
void sync_folder(const std::filesystem::path& folder);

struct FreeSpace {
  std::uint64_t bytes = 0;
  std::uint64_t files = 0;  // that can still be created
};
FreeSpace free_space(const std::filesystem::path& folder);

// Gives `from` the name `to`, which must not be a good folder that would be lost: where `to` is
// there the two swap names at once. False when the file system cannot swap; then nothing changed.
bool rename_or_swap(const std::filesystem::path& from, const std::filesystem::path& to);

// Held by the one process that saves in a folder; released when the process ends, however it does.
// Where the file system knows no locks, everyone gets it.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

  bool held() const { return held_; }

 private:
  int descriptor_ = -1;
  bool held_ = false;
};

}  // namespace bloomery
