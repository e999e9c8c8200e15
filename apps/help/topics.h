// What help says besides the commands' own pages.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace bloomery {

// Each exit code with what it means.
std::vector<std::pair<std::string, std::string>> exit_codes();

// Pages, in lines of at most so many columns.
std::string program_page(std::size_t columns);     // bloomery help
std::string compat_page(std::size_t columns);      // bloomery help compat
std::string exit_codes_page(std::size_t columns);  // bloomery help exit-codes
std::string sizes_page(std::size_t columns);       // bloomery help sizes

}  // namespace bloomery
