#include "serve/api_error.h"

#include <nlohmann/json.hpp>

namespace bloomery {

using Json = nlohmann::ordered_json;

std::string ApiError::json() const {
  const char* const type = status == 401   ? "authentication_error"
                           : status == 503 ? "overloaded_error"
                           : status >= 500 ? "server_error"
                                           : "invalid_request_error";
  const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  const Json error = {
      {"error",
       {{"message", what()}, {"type", type}, {"param", or_null(param)}, {"code", or_null(code)}}}};
  return error.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace bloomery
