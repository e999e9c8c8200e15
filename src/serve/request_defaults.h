// What a server takes where a request says nothing.
#pragma once

#include <cstdint>
#include <optional>

namespace bloomery {

// None: what the API of the request has as its default.
struct RequestDefaults {
  std::optional<std::int64_t> max_tokens;  // or as many as there is room for
  std::optional<double> temperature, top_p;
  std::optional<std::int64_t> top_k;
};

}  // namespace bloomery
