// What an unknown option most likely stands for: a misspelled one, or what other programs call it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bloomery {

// "; did you mean --num-layers?" or "; here it is --train-iters", each name behind `prefix`; empty
// when nothing is near. `known` are the spellings that may be suggested.
std::string advice_for_unknown(std::string_view name, const std::vector<std::string>& known,
                               std::string_view prefix);

}  // namespace bloomery
