#include <csignal>
#include <iostream>

#include "apps/bloomery.h"
#include "apps/shims/shims.h"
#include "base/file_limit.h"

int main(int argc, char** argv) {
  const bloomery::Arguments arguments(argv + 1, argv + argc);
  if (!arguments.empty() &&
      arguments[0] == "shim") {  // it becomes another program, as it was started
    return bloomery::run_shim({arguments.begin() + 1, arguments.end()});
  }
  // A file over the size limit of the process is then an error of the write, as a full disk is.
  std::signal(SIGXFSZ, SIG_IGN);
  bloomery::raise_file_limit();
  return bloomery::run_bloomery(arguments, std::cout, std::cerr);
}
