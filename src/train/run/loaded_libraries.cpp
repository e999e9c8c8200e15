#include "train/run/loaded_libraries.h"

#include <dlfcn.h>

#include <cstddef>

#include "base/error.h"

namespace bloomery {
namespace {

struct Library {
  const char* name;
  const char* file;
  const char* function;  // of its version
};
constexpr Library kLibraries[] = {{"cuBLASLt", "libcublasLt.so.13", "cublasLtGetVersion"},
                                  {"cuBLASLt", "libcublasLt.so.12", "cublasLtGetVersion"},
                                  {"cuDNN", "libcudnn.so.9", "cudnnGetVersion"},
                                  {"oneDNN", "libdnnl.so.3", "dnnl_version"},
                                  {"oneDNN", "libdnnl.so.2", "dnnl_version"}};

std::string version(void* function, bool one_dnn) {
  if (one_dnn) {
    struct Numbers {
      int major, minor, patch;  // and more that does not matter
    };
    const Numbers* found = reinterpret_cast<const Numbers* (*)()>(function)();
    return concat(found->major, ".", found->minor, ".", found->patch);
  }
  const std::size_t number = reinterpret_cast<std::size_t (*)()>(function)();
  return concat(number / 10000, ".", number / 100 % 100, ".", number % 100);
}

}  // namespace

std::string loaded_library_versions() {
  std::string text;
  for (const Library& library : kLibraries) {
    // Only counts a use more of what is there.
    void* const handle = dlopen(library.file, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) {
      continue;
    }
    if (void* const function = dlsym(handle, library.function)) {
      const bool one_dnn = std::string(library.name) == "oneDNN";
      text += concat(text.empty() ? "; " : ", ", library.name, " ", version(function, one_dnn));
    }
    dlclose(handle);
  }
  return text;
}

}  // namespace bloomery
