// What a call throws, for tests of groups of ranks.
#pragma once

#include <functional>
#include <string>

#include "base/error.h"

namespace bloomery {

// The message of the Error that `body` throws; empty if it throws none.
inline std::string error_of(const std::function<void()>& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace bloomery
