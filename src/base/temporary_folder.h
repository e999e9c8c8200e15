// A folder of its own for files that need not outlive an object.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>

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

}  // namespace bloomery
