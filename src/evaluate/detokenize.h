// Undoes the spacing of evaluation sets whose words and punctuation were separated, by the rules of
// Megatron's zero-shot tasks: a model that learned from ordinary text must see ordinary text.
#pragma once

#include <string>
#include <string_view>

namespace bloomery {

std::string detokenize_wikitext(std::string_view text);
std::string detokenize_ptb(std::string_view text);

// By the first of `ptb`, `wiki` and `lambada` that the path contains, as there; LAMBADA's texts
// stay as they are. A path with none of them is taken for WikiText.
std::string detokenize(std::string_view text, std::string_view path);

}  // namespace bloomery
