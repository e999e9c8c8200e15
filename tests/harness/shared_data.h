// The shared data folder beside the repository, for tests against real files.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace bloomery {

// A file or folder under shared/data; nothing when it is not here, and then the test should skip.
std::optional<std::filesystem::path> shared_data(const std::string& name);

// The contents of a file of the repository's tests/golden.
std::string golden_file(const std::string& name);

// A whole .xz file, unpacked.
std::string read_xz(const std::filesystem::path& path);

// A folder of its own for a test's files, removed with everything in it at the end.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  // Writes a file in it and gives its path.
  std::filesystem::path file(const std::string& name, const std::string& contents) const;

 private:
  std::filesystem::path path_;
};

}  // namespace bloomery
