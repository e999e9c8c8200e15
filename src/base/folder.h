// Folders that appear whole or not at all, and go the same way.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery {

// Makes the names in a folder durable. Failures are std::runtime_error.
void sync_folder(const std::filesystem::path& folder);
// The folder that a path lies in; "." for a bare name.
std::filesystem::path folder_of(const std::filesystem::path& path);

// Makes a folder, and those above it, whose names are durable then. Failures are those of
// std::filesystem.
void create_folders(const std::filesystem::path& folder);

struct FreeSpace {
  std::uint64_t bytes = 0;
  std::uint64_t files = 0;  // that can still be created
};
FreeSpace free_space(const std::filesystem::path& folder);

// Deletes what processes that have ended left in a folder under temporary names for final names
// that `is_final` accepts: processes of this machine that are no more, and those of others that
// have not written there for a day. The names of those that stay: their writers may be alive.
std::vector<std::string> remove_temporaries(const std::filesystem::path& folder,
                                            const std::function<bool(std::string_view)>& is_final);

// A folder under a temporary name beside its final one. commit() makes its names durable and gives
// it the final one; without that nothing of it remains. Files are to be durable when it is called:
// AtomicFile makes them so.
class StagedFolder {
 public:
  // Makes the folder, and those above it, and removes what earlier processes left of the same name.
  // An Error when that is impossible.
  explicit StagedFolder(const std::filesystem::path& final_name);
  ~StagedFolder();
  StagedFolder(const StagedFolder&) = delete;
  StagedFolder& operator=(const StagedFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  const std::filesystem::path& final_path() const { return final_; }

  // Replaces an empty folder; a final name that is otherwise in use is a std::runtime_error.
  void commit();

 private:
  std::filesystem::path final_, path_;
};

// Gives the folder a temporary name, makes that durable, then deletes it: a kill leaves it whole or
// without its name. One that is gone already is no failure.
void remove_folder(const std::filesystem::path& folder);

}  // namespace bloomery
