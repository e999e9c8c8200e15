#include "base/library.h"

#include <dlfcn.h>

namespace bloomery {

Library Library::open(const std::vector<std::string>& names, Names visible) {
  Library library;
  const int scope = visible == Names::global ? RTLD_GLOBAL : RTLD_LOCAL;
  for (const std::string& name : names) {
    library.handle_ = dlopen(name.c_str(), RTLD_NOW | scope | RTLD_NODELETE);
    if (library.handle_ != nullptr) {
      library.name_ = name;
      break;
    }
  }
  return library;
}

void* Library::find(const char* symbol) const {
  return handle_ == nullptr ? nullptr : dlsym(handle_, symbol);
}

}  // namespace bloomery
