// The inside of a quoted text in a template.
#pragma once

#include <string>
#include <string_view>

namespace bloomery::jinja {

// Undoes Python's escapes. One that Python does not know stays as it is written.
std::string unescape(std::string_view text);

}  // namespace bloomery::jinja
