// One writer at a time, among processes and machines: a lock file.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace bloomery {

struct LockWait {
  std::chrono::milliseconds longest{0};  // then an Error that names who holds the lock
  // Called once, when the lock is not free at once, with who holds it.
  std::function<void(const std::string& holder)> on_wait = nullptr;
};

// Held while this object lives; the system releases it when the process ends, however it does. The
// lock file is made if need be and stays; only who tries once (try_lock) can tell that a holder
// removed it. It names its last holder, for messages. A file that cannot be written and a file
// system without locks are Errors: without the lock two processes could write at once.
class FileLock {
 public:
  // Null when it is held elsewhere, be it by this process.
  static std::unique_ptr<FileLock> try_lock(const std::filesystem::path& path);
  FileLock(const std::filesystem::path& path, const LockWait& wait);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  explicit FileLock(const std::filesystem::path& path);  // opens the file only
  bool take();
  bool is_file_of_path() const;  // or its holder removed it before this one had it

  std::filesystem::path path_;
  int descriptor_ = -1;
};

// "process 12 on node7", as a lock file says it; else "another process".
std::string lock_holder(const std::filesystem::path& path);

// What an errno of flock means: true that another holds the lock. An Error for every other one.
bool means_held(int error, const std::filesystem::path& path);

}  // namespace bloomery
