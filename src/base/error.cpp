#include "base/error.h"

#include <cstring>

namespace bloomery {

std::string place(const std::source_location& at) {
  const char* slash = std::strrchr(at.file_name(), '/');
  return concat(" (", slash != nullptr ? slash + 1 : at.file_name(), ":", at.line(), ")");
}

}  // namespace bloomery
