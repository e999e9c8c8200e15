// Which files an --input means.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace bloomery {

// The files that paths and patterns (* ? [...]) name, in the order given and each pattern's in
// sorted order. A path that exists is taken as it is, "-" is standard input. What names nothing, a
// folder, or standard input twice is an Error, which names the `flag` that they were given with.
std::vector<std::string> input_files(const std::vector<std::string>& paths_and_patterns,
                                     const std::string& flag = "--input");

// The bytes on disk of all of them; 0 when one is standard input, a pipe or a device.
std::uint64_t total_bytes(const std::vector<std::string>& files);

}  // namespace bloomery
