// Bytes written as base64, which vocabulary files use for what is not text.
#pragma once

#include <string>
#include <string_view>

namespace bloomery {

// Appends the bytes; false when the text is not base64 with its padding.
bool append_base64(std::string_view text, std::string& bytes);

}  // namespace bloomery
