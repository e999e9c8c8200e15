// Whether a power failure at any moment leaves each step-N whole or absent. In this program the
// system calls that write, name and sync files are ours: they keep in mind which files and which
// names no fsync covers yet, as a disk may lose those.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <functional>
#include <mutex>
#include <set>

#include "checkpoint/checkpoint_case.h"

namespace bloomery {
namespace {

namespace fs = std::filesystem;

ino_t number_of(const fs::path& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

class Disk {
 public:
  using Forgets = std::function<bool(const fs::path&)>;
  // `forgets`: paths whose fsync does nothing.
  explicit Disk(Forgets forgets) : forgets_(std::move(forgets)) { current() = this; }
  ~Disk() { current() = nullptr; }
  Disk(const Disk&) = delete;
  Disk& operator=(const Disk&) = delete;

  static Disk*& current() {
    static Disk* disk = nullptr;
    return disk;
  }

  void written(int descriptor) {
    const std::scoped_lock lock(mutex_);
    struct stat status {};
    if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) return;
    if (files_.insert(status.st_ino).second) lost_names_.insert(number_of(folder(descriptor)));
    lost_contents_.insert(status.st_ino);
  }

  void synced(int descriptor) {
    const std::scoped_lock lock(mutex_);
    struct stat status {};
    if (::fstat(descriptor, &status) != 0 || forgets_(path_of(descriptor))) return;
    (S_ISDIR(status.st_mode) ? lost_names_ : lost_contents_).erase(status.st_ino);
  }

  void renaming(const fs::path& from, const fs::path& to) {
    const bool commits = step_of_name(to.filename().string()).has_value();
    const bool removes = step_of_name(from.filename().string()).has_value();
    const std::scoped_lock lock(mutex_);
    if (commits) look_into(from);
    if (removes) expect_names(to.parent_path(), "an older checkpoint goes");
  }
  void named(const fs::path& path) {
    const std::scoped_lock lock(mutex_);
    lost_names_.insert(number_of(path.parent_path()));
  }

  // Whoever was told that a checkpoint is there finds it after a power failure.
  void expect_names(const fs::path& folder, const std::string& when) {
    if (lost_names_.contains(number_of(folder))) {
      problems.push_back(concat(when, " before the names in ", folder.string(), " are durable"));
    }
  }

  std::vector<std::string> problems;

 private:
  static fs::path path_of(int descriptor) {
    std::error_code ignored;
    return fs::read_symlink(concat("/proc/self/fd/", descriptor), ignored);
  }
  static fs::path folder(int descriptor) {
    const fs::path path = path_of(descriptor);
    return path.filename().string().starts_with('#') ? fs::path() : path.parent_path();
  }

  void look_into(const fs::path& folder) {
    expect_names(folder, "a checkpoint is committed");
    for (const auto& item : fs::directory_iterator(folder)) {
      if (lost_contents_.contains(number_of(item.path()))) {
        problems.push_back(item.path().string() + " is committed before it is durable");
      }
    }
  }

  const Forgets forgets_;
  std::mutex mutex_;
  std::set<ino_t> files_, lost_contents_, lost_names_;  // the last: of folders
};

template <class Call>
Call real(const char* name) {
  return reinterpret_cast<Call>(dlsym(RTLD_NEXT, name));
}

}  // namespace
}  // namespace bloomery

using bloomery::Disk, bloomery::real;

extern "C" {

int fsync(int descriptor) {
  static const auto call = real<int (*)(int)>("fsync");
  const int result = call(descriptor);
  if (result == 0 && Disk::current() != nullptr) Disk::current()->synced(descriptor);
  return result;
}

ssize_t write(int descriptor, const void* data, size_t bytes) {
  static const auto call = real<ssize_t (*)(int, const void*, size_t)>("write");
  if (Disk::current() != nullptr) Disk::current()->written(descriptor);
  return call(descriptor, data, bytes);
}

ssize_t pwrite(int descriptor, const void* data, size_t bytes, off_t offset) {
  static const auto call = real<ssize_t (*)(int, const void*, size_t, off_t)>("pwrite");
  if (Disk::current() != nullptr) Disk::current()->written(descriptor);
  return call(descriptor, data, bytes, offset);
}

int rename(const char* from, const char* to) noexcept {
  static const auto call = real<int (*)(const char*, const char*)>("rename");
  if (Disk::current() != nullptr) Disk::current()->renaming(from, to);
  const int result = call(from, to);
  if (result == 0 && Disk::current() != nullptr) Disk::current()->named(to);
  return result;
}

int linkat(int from_folder, const char* from, int to_folder, const char* to, int flags) noexcept {
  static const auto call = real<int (*)(int, const char*, int, const char*, int)>("linkat");
  const int result = call(from_folder, from, to_folder, to, flags);
  if (result == 0 && Disk::current() != nullptr) Disk::current()->named(to);
  return result;
}

int mkdir(const char* path, mode_t mode) noexcept {
  static const auto call = real<int (*)(const char*, mode_t)>("mkdir");
  const int result = call(path, mode);
  if (result == 0 && Disk::current() != nullptr) Disk::current()->named(path);
  return result;
}

}  // extern "C"

namespace bloomery {
namespace {

// What is wrong when a run saves three times in a new folder and keeps two.
std::vector<std::string> problems(const std::function<bool(const fs::path&)>& forgets) {
  const TestFolder parent;
  const fs::path save = parent.path() / "runs" / "mine";
  Disk disk(forgets);
  CheckpointWriter writer(save, single_rank_group(), {.keep = {.last = 2}});
  for (int step = 1; step <= 3; ++step) {
    Snapshot snapshot = flat_snapshot(step);
    snapshot.files = std::make_shared<const std::vector<SnapshotFile>>(
        std::vector<SnapshotFile>{{"vocab.json", "{}"}});
    writer.save(std::move(snapshot));
    EXPECT_TRUE(writer.finish()->committed);
    for (const fs::path& folder : {save, save.parent_path(), parent.path()}) {
      disk.expect_names(folder, "a commit is told");
    }
  }
  return disk.problems;
}

bool is_temporary(const fs::path& path) {
  return path.string().find(".tmp-") != path.string().npos;
}

TEST(Durability, WhatIsCommittedSurvivesAPowerFailure) {
  EXPECT_EQ(problems([](const fs::path&) { return false; }), std::vector<std::string>());
}

// Each of these alone is needed, and is seen to be missing.
TEST(Durability, NoFsyncIsMissing) {
  const std::map<std::string, std::function<bool(const fs::path&)>> forgotten = {
      {"all", [](const fs::path&) { return true; }},
      {"pieces", [](const fs::path& path) { return path.extension() == ".safetensors"; }},
      {"manifest and other small files",
       [](const fs::path& path) {
         return is_temporary(path.parent_path()) && path.extension() != ".safetensors";
       }},
      {"temporary folder",
       [](const fs::path& path) { return is_temporary(path) && fs::is_directory(path); }},
      {"folder of checkpoints", [](const fs::path& path) { return path.filename() == "mine"; }},
      {"the folder above", [](const fs::path& path) { return path.filename() == "runs"; }},
      {"that of all runs", [](const fs::path& path) {
         return path.filename().string().starts_with("bloomery_checkpoint_test_");
       }}};
  for (const auto& [what, forgets] : forgotten) {
    EXPECT_NE(problems(forgets), std::vector<std::string>()) << what;
  }
}

}  // namespace
}  // namespace bloomery
