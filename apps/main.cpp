#include <csignal>
#include <iostream>

#include "apps/bloomery.h"
#include "base/file_limit.h"

int main(int argc, char** argv) {
  // A file over the size limit of the process is then an error of the write, as a full disk is.
  std::signal(SIGXFSZ, SIG_IGN);
  bloomery::raise_file_limit();
  return bloomery::run_bloomery({argv + 1, argv + argc}, std::cout, std::cerr);
}
