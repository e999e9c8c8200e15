#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace bloomery {

// In one line; bytes that are no UTF-8 become U+FFFD.
std::string json_text(const nlohmann::ordered_json& json);

}  // namespace bloomery
