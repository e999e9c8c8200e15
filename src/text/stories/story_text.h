// The grammar of the embedded stories.
#pragma once

#include <string_view>

namespace bloomery {

std::string_view story_text();

}  // namespace bloomery
