// The small files that stand for other programs.
#pragma once

#include <filesystem>
#include <string>

namespace bloomery {

// The text of such a file: it calls `program` with `shim NAME` and its own arguments.
std::string shim_file(const std::filesystem::path& program, const std::string& name);

bool is_shim_file(const std::filesystem::path& path);

}  // namespace bloomery
