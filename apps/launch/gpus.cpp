#include "apps/launch/gpus.h"

#include <cstdio>
#include <sstream>

#include "build_config.h"
#include "device/device.h"

namespace bloomery {

int count_gpus(const std::string& listed) {
  int gpus = 0;
  std::istringstream lines(listed);
  for (std::string line; std::getline(lines, line);) {
    gpus += line.starts_with("GPU ") ? 1 : 0;
  }
  return gpus;
}

int gpus_of_this_machine() {
  if (!build::cuda) {
    return 0;
  }
  std::string listed;
  if (std::FILE* const program = popen("nvidia-smi -L 2>/dev/null", "re")) {
    char bytes[4096];
    for (std::size_t count = 0; (count = std::fread(bytes, 1, sizeof bytes, program)) > 0;) {
      listed.append(bytes, count);
    }
    pclose(program);
  }
  const int gpus = count_gpus(listed);
  return gpus > 0 ? gpus : num_cuda_devices();
}

}  // namespace bloomery
