#include "base/temporary_folder.h"

#include <stdlib.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <system_error>

#include "base/error.h"

namespace bloomery {

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "bloomery-XXXXXX").string();
  check(mkdtemp(name.data()) != nullptr, "cannot make a temporary folder like ", name, ": ",
        std::generic_category().message(errno));
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::filesystem::path TemporaryFolder::file(const std::string& name,
                                            std::string_view contents) const {
  const std::filesystem::path path = path_ / name;
  std::ofstream out(path, std::ios::binary);
  out << contents;
  check(out.good(), "cannot write ", path.string());
  return path;
}

std::vector<std::string> visible_names(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& item : std::filesystem::directory_iterator(folder)) {
    if (std::string name = item.path().filename().string(); !name.starts_with('.')) {
      names.push_back(std::move(name));
    }
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace bloomery
