#include "bloomery.h"

#include <exception>

#include "base/error.h"
#include "bench.h"
#include "build_config.h"
#include "tokenizer.h"

namespace bloomery {
namespace {

std::vector<Command> commands() {
  return {
      {"bench", "measure this machine and the kernels on it", bench},
      {"tokenizer", "text to token ids and back", tokenizer},
  };
}

}  // namespace

int run_bloomery(const Arguments& arguments, std::ostream& out, std::ostream& errors) noexcept {
  try {
    if (!arguments.empty() && arguments[0] == "--version") {
      out << "bloomery " << build::version << (build::cuda ? " (CUDA and CPU)" : " (CPU)") << '\n';
      return kFinished;
    }
    return dispatch("bloomery", commands(), arguments, out);
  } catch (const Error& error) {
    errors << "bloomery: " << error.what() << '\n';
    return kBadInput;
  } catch (const std::exception& error) {
    errors << "bloomery: failed: " << error.what() << '\n';
    return kFailed;
  }
}

}  // namespace bloomery
