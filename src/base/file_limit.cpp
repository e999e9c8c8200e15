#include "base/file_limit.h"

#include <sys/resource.h>

namespace bloomery {

void raise_file_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);  // else the first file too many says it
  }
}

}  // namespace bloomery
