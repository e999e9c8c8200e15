// Names of files as JSON can hold them.
#pragma once

#include <string>
#include <string_view>

namespace bloomery {

// The text with every byte that is no UTF-8 as \xNN, so that different texts stay different.
std::string escape_invalid_utf8(std::string_view text);

}  // namespace bloomery
