#pragma once

#include <string_view>
#include <vector>

namespace bloomery {

void split_sentences(std::string_view text, bool keep_newlines,
                     std::vector<std::string_view>& sentences);

}  // namespace bloomery
