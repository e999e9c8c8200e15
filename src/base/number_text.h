// Numbers as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace bloomery {

std::string fixed(double value, int digits);  // digits behind the point
std::string grouped(std::int64_t value);      // 1361845 as "1,361,845"
// "1 document", "2,000 documents": the number grouped, the noun with an s unless it is 1.
std::string counted(std::int64_t number, const std::string& noun);
std::string clock_text(double seconds);     // 75 as "1:15", 3675 as "1:01:15"
std::string size_text(double bytes);        // 1536000 as "1.5 MB"; decimal units
std::string gib_text(std::uint64_t bytes);  // 1610612736 as "1.5 GiB"

}  // namespace bloomery
