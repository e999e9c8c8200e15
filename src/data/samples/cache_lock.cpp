#include "data/samples/cache_lock.h"

#include <unistd.h>

#include <system_error>

namespace bloomery {
namespace {

constexpr std::chrono::hours kLongestWait{24};

}  // namespace

CacheLock::CacheLock(const std::filesystem::path& folder, const std::string& name)
    : lock_(folder / ("." + name + ".lock"), {.longest = kLongestWait}) {}

bool is_writable_folder(const std::filesystem::path& folder) {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  return std::filesystem::is_directory(folder, error) && access(folder.c_str(), W_OK | X_OK) == 0;
}

}  // namespace bloomery
