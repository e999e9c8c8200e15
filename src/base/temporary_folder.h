// A folder of its own for files that need not outlive an object.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace bloomery {

// Made under the system's folder for temporary files; removed with everything in it at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // Writes a file in it and gives its path.
  std::filesystem::path file(const std::string& name, std::string_view contents) const;

 private:
  std::filesystem::path path_;
};

// The names in a folder, sorted, without those that start with a dot, which lock files have.
std::vector<std::string> visible_names(const std::filesystem::path& folder);

}  // namespace bloomery
