// What is wrong with a request, as OpenAI's clients expect to read it.
#pragma once

#include "base/error.h"

namespace bloomery {

struct ApiError : Error {
  ApiError(int status_, const std::string& message, std::string param_ = "", std::string code_ = "")
      : Error(message), status(status_), param(std::move(param_)), code(std::move(code_)) {}

  int status;
  std::string param, code;  // empty: none

  // {"error": {message, type, param, code}}
  std::string json() const;
};

}  // namespace bloomery
