#include "device/cuda_library.h"

#include <cstdlib>

namespace bloomery {

Library open_cuda_library(const std::string& name) {
  std::vector<std::string> names = {name};
  const char* const home = std::getenv("CUDA_HOME");
  for (const std::string& folder :
       {std::string(home == nullptr ? "" : home), std::string("/usr/local/cuda")}) {
    if (!folder.empty()) {
      names.push_back(folder + "/lib64/" + name);
      names.push_back(folder + "/lib/" + name);
    }
  }
  return Library::open(names);
}

}  // namespace bloomery
