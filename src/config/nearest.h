// "Did you mean ...?": the known name closest to a misspelled one.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bloomery {

// Single-character insertions, deletions, replacements and swaps of neighbours between two words.
int edit_distance(std::string_view a, std::string_view b);

// The name that `misspelled` most likely stands for; empty when none is close. The first of
// equally near names wins.
std::string nearest(std::string_view misspelled, const std::vector<std::string>& names);

// "; did you mean NAME?", or nothing when no name is near.
std::string suggestion(std::string_view misspelled, const std::vector<std::string>& names);

}  // namespace bloomery
