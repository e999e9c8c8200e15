#include "text/input/input_files.h"

#include <glob.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <system_error>

#include "base/error.h"

namespace bloomery {
namespace {

// glob(3) sorts its answer.
std::vector<std::string> matches(const std::string& pattern, const std::string& flag) {
  glob_t found{};
  const int result = glob(pattern.c_str(), 0, nullptr, &found);
  std::vector<std::string> paths;
  if (result == 0) {
    paths.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  }
  globfree(&found);
  check(result != GLOB_NOSPACE, flag, " ", pattern, ": no memory for the names it matches");
  return paths;
}

// "for example 'folder/*.json.gz'": a pattern for most files of a folder or of those in it.
std::string example_in(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  constexpr int kMostFiles = 1000, kDeepest = 2;
  std::map<std::string, int> patterns;
  std::error_code error;
  int seen = 0;
  for (fs::recursive_directory_iterator file(folder, fs::directory_options::skip_permission_denied,
                                             error);
       !error && file != fs::recursive_directory_iterator() && seen < kMostFiles;
       file.increment(error)) {
    if (file.depth() >= kDeepest) file.disable_recursion_pending();
    const std::string name = file->path().filename().string();
    if (!file->is_regular_file(error) || name.starts_with('.')) continue;
    fs::path pattern = folder;
    for (int depth = 0; depth < file.depth(); ++depth) pattern /= "*";
    const fs::path unpacked = fs::path(name).stem(), ending = fs::path(name).extension();
    const bool packed = ending == ".gz" || ending == ".xz" || ending == ".zst";
    ++patterns[pattern / ("*" + (packed ? unpacked.extension().string() : "") + ending.string())];
    ++seen;
  }
  if (patterns.empty()) return "; it has no files";
  const auto most =
      std::ranges::max_element(patterns, {}, [](const auto& pattern) { return pattern.second; });
  return concat("; name its files, for example '", most->first, "'");
}

// Told before hours of other files are read.
void check_readable(const std::string& path, const std::string& flag) {
  if (path == "-") return;
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) {
    throw Error(concat(flag, " ", path, " is a folder", example_in(path)));
  }
  check(access(path.c_str(), R_OK) == 0, flag, " ", path,
        " cannot be read: ", std::strerror(errno));
}

}  // namespace

std::vector<std::string> input_files(const std::vector<std::string>& paths_and_patterns,
                                     const std::string& flag) {
  std::vector<std::string> files;
  for (const std::string& text : paths_and_patterns) {
    std::error_code error;
    if (text == "-" || std::filesystem::exists(text, error)) {
      check_readable(text, flag);
      files.push_back(text);
      continue;
    }
    const std::vector<std::string> found = matches(text, flag);
    check(!found.empty(), flag, " ", text,
          text.find_first_of("*?[") == std::string::npos ? ": there is no such file"
                                                         : ": no file matches");
    for (const std::string& path : found) {
      check_readable(path, flag);
      files.push_back(path);
    }
  }
  check(!files.empty(), flag, " names no file");
  check(std::ranges::count(files, "-") <= 1, flag, ": standard input (-) can be read only once");
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
