// Text cut into lines that fit a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace bloomery {

// `line` goes on with the words of `text`, in lines of at most `columns`; further lines start at
// column `indent`. A word that is wider than a line has a line of its own. Without a line break at
// the end.
std::string wrapped(std::string line, std::string_view text, std::size_t columns,
                    std::size_t indent);

// Each line of a text wrapped by itself, so that paragraphs and lists stay: further lines start
// below its first word, those of "usage:" behind that word. Lines that fit stay as they are.
std::string wrapped_lines(std::string_view text, std::size_t columns);

}  // namespace bloomery
