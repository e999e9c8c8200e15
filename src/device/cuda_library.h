// NVIDIA's libraries beside the runtime, opened at the first call of one of their functions, so
// that the program starts where they are not installed.
#pragma once

#include "base/error.h"
#include "base/library.h"

namespace bloomery {

// Where programs find libraries, or below CUDA_HOME or the usual folder of CUDA.
Library open_cuda_library(const std::string& name);

// An Error when the library is not there.
template <class Function>
Function* cuda_function(const Library& library, const char* of, const char* name) {
  Function* const function = library.function<Function>(name);
  check(function != nullptr, of, " has no ", name, ", or was not found: install the libraries of ",
        "CUDA, add their folder to LD_LIBRARY_PATH, or give --device cpu");
  return function;
}

}  // namespace bloomery

// Defines the function of a library's header to call the one in the library.
#define BLOOMERY_FORWARD(library, of, result, name, parameters, arguments)                     \
  extern "C" result name parameters {                                                          \
    static auto* const function = bloomery::cuda_function<decltype(name)>(library, of, #name); \
    return function arguments;                                                                 \
  }
