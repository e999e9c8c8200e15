// The page of the server: one file, made part of the program.
#pragma once

#include <string>

namespace bloomery {

std::string page_html();

}  // namespace bloomery
