// A text in lines, words and characters, as rules about quality count them. Texts are UTF-8.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace bloomery {

// Characters, not bytes.
std::int64_t characters(std::string_view text);

// Without white space at both ends, as Python's str.strip.
std::string_view trim(std::string_view text);
std::string_view trim_left(std::string_view text);
std::string_view trim_right(std::string_view text);

// Lines as Python's str.splitlines: without their ends, and none after the last end.
std::vector<std::string_view> split_lines(std::string_view text);
// What stands between runs of `least` or more newlines, empty parts included.
std::vector<std::string_view> split_at_newlines(std::string_view text, std::size_t least);
// What stands between white space.
std::vector<std::string_view> split_space(std::string_view text);

// In datatrove's list of punctuation, or the end of a sentence in some script.
bool is_punctuation_mark(char32_t code);
bool ends_sentence(char32_t code);

// The last character of a text that is not empty.
char32_t last_character(std::string_view text);

std::int64_t count_of(std::string_view text, std::string_view part);  // without overlap

}  // namespace bloomery
