// Everything that is wrong with something, one line each, found in one pass.
#pragma once

#include <string>
#include <vector>

#include "base/error.h"

namespace bloomery {

struct Findings {
  std::vector<std::string> found;

  template <class... Parts>
  void require(bool condition, const Parts&... parts) {
    if (!condition) {
      found.push_back(concat(parts...));
    }
  }
  void add(const std::vector<std::string>& more) {
    found.insert(found.end(), more.begin(), more.end());
  }
  // What an Error of `body` says.
  template <class Body>
  void attempt(Body&& body) {
    try {
      body();
    } catch (const Error& error) {
      found.push_back(error.what());
    }
  }
};

}  // namespace bloomery
