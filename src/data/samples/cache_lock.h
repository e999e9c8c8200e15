// Lets one process or thread at a time build a file that many want.
#pragma once

#include <filesystem>
#include <string>

#include "base/file_lock.h"

namespace bloomery {

// Waits for the lock FOLDER/.NAME.lock and holds it while this object lives.
class CacheLock {
 public:
  CacheLock(const std::filesystem::path& folder, const std::string& name);

 private:
  FileLock lock_;
};

// Makes the folder if need be. False when nothing can be written there.
bool is_writable_folder(const std::filesystem::path& folder);

}  // namespace bloomery
