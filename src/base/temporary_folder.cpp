#include "base/temporary_folder.h"

#include <stdlib.h>

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

}  // namespace bloomery
