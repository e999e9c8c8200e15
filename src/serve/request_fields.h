// Fields of a JSON request with their types and bounds; what does not fit is an ApiError that names
// it. A field that is null counts as absent.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "serve/api_error.h"

namespace bloomery {

using Json = nlohmann::ordered_json;

// An object, nested 32 levels deep at most and of a size that is read in well under a second:
// 131,072 values besides numbers, 512 keys in an object.
Json parse_request(std::string_view body);

class RequestFields {
 public:
  explicit RequestFields(const Json& object) : object_(object) {}

  const Json* find(const char* name) const;  // null: absent
  bool boolean(const char* name, bool otherwise) const;
  std::optional<std::int64_t> integer(const char* name, std::int64_t least,
                                      std::int64_t most) const;
  std::optional<double> number(const char* name, double least, double most) const;
  std::string text(const char* name) const;  // empty: absent
  // One or several, each not empty.
  std::vector<std::string> texts(const char* name, std::size_t most_texts,
                                 std::size_t most_bytes) const;
  std::vector<std::int32_t> tokens(const char* name, std::size_t most) const;

 private:
  const Json& object_;
};

}  // namespace bloomery
