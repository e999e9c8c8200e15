#include "base/user_cache.h"

#include <cstdlib>

namespace bloomery {

std::filesystem::path user_cache() {
  if (const char* cache = std::getenv("XDG_CACHE_HOME"); cache != nullptr && *cache == '/') {
    return std::filesystem::path(cache) / "bloomery";
  }
  const char* home = std::getenv("HOME");
  return home == nullptr || *home != '/' ? std::filesystem::path()
                                         : std::filesystem::path(home) / ".cache" / "bloomery";
}

}  // namespace bloomery
