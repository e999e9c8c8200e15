// HTML 5's names of characters (tools/repair_tables.py).
#pragma once

#include <string_view>

namespace bloomery {

// "name=HEX" or "name=HEX+HEX", divided by white space; with * in front the name in capitals stands
// for the same.
extern const std::string_view kEntityNames;

}  // namespace bloomery
