// Values as texts: Python's str() and repr(), and json.dumps.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "chat/jinja/heap.h"

namespace bloomery::jinja {

Text to_text(Heap& heap, const Value& value);     // str()
Text to_literal(Heap& heap, const Value& value);  // repr()
std::string real_text(double value);              // repr() of a float

struct JsonStyle {
  std::optional<std::string> indent;  // of one level; nothing: all in one line
  std::string item_separator = ", ", key_separator = ": ";
  bool ensure_ascii = false, sort_keys = false;
};
Text to_json(Heap& heap, const Value& value, const JsonStyle& style);

// Every text in it gets the mark.
Value from_json(Heap& heap, const nlohmann::ordered_json& json, char mark, int depth = 0);

}  // namespace bloomery::jinja
