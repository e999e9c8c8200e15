// Texts as Python's str sees them, because the tasks are defined by Python programs: white space is
// Unicode's, and replacing and trimming have Python's exact rules. All texts are valid UTF-8.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace bloomery {

bool is_python_space(char32_t code);  // str.isspace of one character

std::string_view strip(std::string_view text);      // str.strip()
std::int64_t count_words(std::string_view text);    // len(str.split())
std::string_view last_word(std::string_view text);  // str.split()[-1]; empty when there is none
std::int64_t count_pieces(std::string_view text);   // len(str.split(" ")): at least 1
std::string python_number(double value);            // repr(float), of a number
std::string replace_all(std::string_view text, std::string_view from, std::string_view to);

}  // namespace bloomery
