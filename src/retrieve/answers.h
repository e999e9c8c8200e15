// Whether a text has the answer to a question, as Megatron's open-domain tasks decide it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace bloomery {

// The words of a text: runs of letters, numbers and marks, and each other character that can be
// seen, of the decomposed text (NFD) in lower case.
std::vector<std::string> answer_words(std::string_view text);

// Whether the words of one of the answers come in the text, one after another.
bool has_answer(std::string_view text, const std::vector<std::vector<std::string>>& answers);

// The strings of a list that Python would print: ['a', "it's"]. An Error names `place`.
std::vector<std::string> python_list(std::string_view text, const std::string& place);

}  // namespace bloomery
