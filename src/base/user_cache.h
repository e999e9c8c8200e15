// Where this user's programs keep what they can make again.
#pragma once

#include <filesystem>

namespace bloomery {

// Ours in $XDG_CACHE_HOME or ~/.cache; empty when neither is known.
std::filesystem::path user_cache();

}  // namespace bloomery
