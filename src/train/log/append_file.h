// A file that only grows: what append() was given stays whatever becomes of this process.
#pragma once

#include <filesystem>
#include <string_view>

namespace bloomery {

class AppendFile {
 public:
  // Opens the file, made if it is not there; with `fresh` it must not be there. A folder or file
  // that cannot be written to is an Error.
  explicit AppendFile(const std::filesystem::path& path, bool fresh = false);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  // Hands the bytes to the system before it returns. Failures are std::runtime_error; DiskFull
  // (base/file.h) when there is no room. Then none of the bytes is in the file.
  void append(std::string_view bytes);
  // Waits until the disk has them too.
  void sync();
  const std::filesystem::path& path() const { return path_; }

 private:
  void take_back(std::size_t bytes);

  std::filesystem::path path_;
  int descriptor_ = -1;
};

}  // namespace bloomery
