// Bytes written as base64, which vocabulary files use for what is not text.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace bloomery {

// Nothing when the text is not base64 with its padding.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace bloomery
