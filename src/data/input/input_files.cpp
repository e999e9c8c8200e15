#include "data/input/input_files.h"

#include <glob.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "base/error.h"

namespace bloomery {
namespace {

// glob(3) sorts its answer.
std::vector<std::string> matches(const std::string& pattern) {
  glob_t found{};
  const int result = glob(pattern.c_str(), 0, nullptr, &found);
  std::vector<std::string> paths;
  if (result == 0) {
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  }
  globfree(&found);
  check(result != GLOB_NOSPACE, "--input ", pattern, ": no memory for the names it matches");
  return paths;
}

// Told before hours of other files are read.
void check_readable(const std::string& path) {
  std::error_code error;
  check(!std::filesystem::is_directory(path, error), "--input ", path,
        " is a folder; name its files, for example '", path, "/*.jsonl'");
  check(path == "-" || access(path.c_str(), R_OK) == 0, "--input ", path,
        " cannot be read: ", std::strerror(errno));
}

}  // namespace

std::vector<std::string> input_files(const std::vector<std::string>& paths_and_patterns) {
  std::vector<std::string> files;
  for (const std::string& text : paths_and_patterns) {
    std::error_code error;
    if (text == "-" || std::filesystem::exists(text, error)) {
      check_readable(text);
      files.push_back(text);
      continue;
    }
    const std::vector<std::string> found = matches(text);
    check(!found.empty(), "--input ", text,
          text.find_first_of("*?[") == std::string::npos ? ": there is no such file"
                                                         : ": no file matches");
    for (const std::string& path : found) {
      check_readable(path);
      files.push_back(path);
    }
  }
  check(!files.empty(), "--input names no file");
  check(std::ranges::count(files, "-") <= 1, "--input: standard input (-) can be read only once");
  return files;
}

std::uint64_t total_bytes(const std::vector<std::string>& files) {
  std::uint64_t total = 0;
  for (const std::string& path : files) {
    std::error_code error;
    if (path == "-" || !std::filesystem::is_regular_file(path, error)) {
      return 0;
    }
    total += std::filesystem::file_size(path, error);
  }
  return total;
}

}  // namespace bloomery
