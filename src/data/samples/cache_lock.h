// Lets one process or thread at a time build a file that many want.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>

namespace bloomery {

// Holds the lock FOLDER/NAME.lock while this object lives; the system frees it when the process
// ends. A file system without locks is an Error, as is a wait longer than `longest`.
class CacheLock {
 public:
  // `on_wait` is called once, when the lock is not free at once.
  CacheLock(const std::filesystem::path& folder, const std::string& name,
            std::chrono::milliseconds longest, const std::function<void()>& on_wait);
  ~CacheLock();
  CacheLock(const CacheLock&) = delete;
  CacheLock& operator=(const CacheLock&) = delete;

 private:
  bool take();

  std::filesystem::path path_;
  int descriptor_ = -1;
};

// Makes the folder if need be. False when nothing can be written there.
bool is_writable_folder(const std::filesystem::path& folder);

}  // namespace bloomery
