// The shared data folder beside the repository, for tests against real files.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "base/temporary_folder.h"

namespace bloomery {

// A file or folder under shared/data; nothing when it is not here, and then the test should skip
// with kNoSharedData. With BLOOMERY_REQUIRE_DATA=1 what is not here is an Error, so that no test is
// left out unnoticed.
std::optional<std::filesystem::path> shared_data(const std::string& name);
inline constexpr char kNoSharedData[] = "shared/data is not beside the repository";

// The contents of a file of the repository's tests/golden.
std::string golden_file(const std::string& name);

// A whole .xz file, unpacked.
std::string read_xz(const std::filesystem::path& path);

}  // namespace bloomery
