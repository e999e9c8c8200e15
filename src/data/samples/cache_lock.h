// Lets one process or thread at a time build a file that many want.
#pragma once

#include <filesystem>

namespace bloomery {

// Waits for the lock FOLDER/NAME.lock and holds it while this object lives; the system frees it
// when the process ends. A file system without locks gives none: then all build, which is slower
// but as safe, since finished files appear under their names whole and are the same.
class CacheLock {
 public:
  CacheLock(const std::filesystem::path& folder, const std::string& name);
  ~CacheLock();
  CacheLock(const CacheLock&) = delete;
  CacheLock& operator=(const CacheLock&) = delete;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
};

// Makes the folder if need be. False when nothing can be written there.
bool is_writable_folder(const std::filesystem::path& folder);

}  // namespace bloomery
