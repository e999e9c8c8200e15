// Text of YAML files.
#pragma once

#include <string>

namespace bloomery {

// A scalar in double quotes.
std::string yaml_text(const std::string& text);
// The lines of a text, so many columns further to the right.
std::string indented(const std::string& lines, int columns);
// A word in which Kubernetes finds no $(NAME).
std::string without_references(const std::string& word);

}  // namespace bloomery
